// As much of the module `vscode` as the extension and its language client use: open documents, settings, diagnostics,
// commands and tasks are kept for the test to look at; whatever else is asked for answers with something that does nothing.
"use strict";
const Module = require("module");
const { EventEmitter } = require("events");
const { pathToFileURL, fileURLToPath } = require("url");

const nothing = () => ({ dispose() {} });

class Event {
    constructor() {
        this.emitter = new EventEmitter();
        this.event = (listener, self) => {
            const bound = self ? listener.bind(self) : listener;
            this.emitter.on("event", bound);
            return { dispose: () => this.emitter.off("event", bound) };
        };
    }
    fire(value) { this.emitter.emit("event", value); }
    dispose() { this.emitter.removeAllListeners(); }
}

class Position {
    constructor(line, character) { Object.assign(this, { line, character }); }
}

class Range {
    constructor(...places) {
        const [start, end] = places.length === 4 ? [new Position(places[0], places[1]), new Position(places[2], places[3])] : places;
        Object.assign(this, { start, end });
    }
}

class Diagnostic {
    constructor(range, message, severity) { Object.assign(this, { range, message, severity }); }
}

class CodeLens {
    constructor(range, command) { Object.assign(this, { range, command }); }
}

class ProcessExecution {
    constructor(process, args, options) { Object.assign(this, { process, args, options }); }
}

class Task {
    constructor(definition, scope, name, source, execution, matchers) {
        Object.assign(this, { definition, scope, name, source, execution, matchers });
    }
}

class CancellationTokenSource {
    constructor() { this.token = { isCancellationRequested: false, onCancellationRequested: nothing }; }
    cancel() {}
    dispose() {}
}

class Uri {
    constructor(href) { this.href = href; }
    static file(path) { return new Uri(pathToFileURL(path).href); }
    static parse(text) { return new Uri(text); }
    get scheme() { return this.href.split(":")[0]; }
    get fsPath() { return fileURLToPath(this.href); }
    get path() { return this.fsPath; }
    toString() { return this.href; }
    toJSON() { return this.href; }
}

// A namespace of the module: what is unknown is an event, a class or a function that does nothing.
function namespace(known) {
    return new Proxy(known, {
        get(target, name) {
            if (name in target || typeof name === "symbol" || name === "then") return target[name];
            target[name] = /^[A-Z]/.test(name) ? class {} : nothing;
            return target[name];
        },
    });
}

function createDocument(file, text) {
    const lines = text.split("\n");
    return {
        uri: Uri.file(file), fileName: file, languageId: "tl", version: 1, isDirty: true, lineCount: lines.length, isClosed: false,
        getText: () => text, lineAt: (line) => ({ text: lines[line] }),
        async save() { this.isDirty = false; return true; },
    };
}

// The state that the test looks at, and the module over it.
function create(settings) {
    const state = { commands: {}, diagnostics: new Map(), tasks: [], problems: [], opened: [], lenses: [], folder: undefined,
                    diagnosed: new Event(), documentOpened: new Event(), taskEnded: new Event(), documents: [] };
    const enums = { DiagnosticSeverity: { Error: 0, Warning: 1, Information: 2, Hint: 3 }, TaskScope: { Global: 1, Workspace: 2 },
                    DiagnosticTag: { Unnecessary: 1, Deprecated: 2 }, CompletionItemKind: {}, CodeActionKind: { Empty: {}, QuickFix: {} } };
    const module_ = namespace({
        ...enums, Position, Range, Diagnostic, CodeLens, ProcessExecution, Task, CancellationTokenSource, Uri, version: "1.90.0",
        EventEmitter: Event, env: namespace({ language: "en", appName: "test", openExternal: (uri) => state.opened.push(uri.fsPath) }),
        workspace: namespace({
            textDocuments: state.documents, workspaceFolders: undefined, notebookDocuments: [], onDidOpenTextDocument: state.documentOpened.event,
            getConfiguration: (section) => ({ get: (name, otherwise) => settings[section ? `${section}.${name}` : name] ?? otherwise, inspect: () => undefined }),
            getWorkspaceFolder: () => state.folder,
        }),
        languages: namespace({
            match: (selector, document) => (JSON.stringify(selector).includes(`"${document.languageId}"`) ? 10 : 0),
            createDiagnosticCollection: () => ({
                set(uri, found) { state.diagnostics.set(uri.toString(), found); state.diagnosed.fire(uri.toString()); },
                delete() {}, clear() {}, dispose() {}, forEach() {},
            }),
            registerCodeLensProvider(_selector, provider) { state.lenses.push(provider); return nothing(); },
        }),
        window: namespace({
            activeTextEditor: undefined, visibleTextEditors: [], tabGroups: namespace({ all: [] }),
            createOutputChannel: () => namespace({ append() {}, appendLine() {}, show() {}, dispose() {} }),
            showErrorMessage: async (message) => { state.problems.push(message); },
        }),
        commands: namespace({
            registerCommand(name, command) { state.commands[name] = command; return nothing(); },
            executeCommand: async (name, ...more) => state.commands[name]?.(...more),
        }),
        tasks: namespace({ onDidEndTaskProcess: state.taskEnded.event, executeTask: async (task) => { state.tasks.push(task); return { task }; } }),
        extensions: namespace({ all: [] }), l10n: namespace({ t: (text) => text }),
    });
    const load = Module._load;
    Module._load = (request, ...more) => (request === "vscode" ? module_ : load(request, ...more));
    return state;
}

module.exports = { create, createDocument };
