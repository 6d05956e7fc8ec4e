// Starts `tl lsp` for programs that are open, and runs the commands of tl by buttons above them and in the title bar.
"use strict";

const { execFile } = require("child_process");
const path = require("path");
const { promisify } = require("util");
const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

const SYMBOL_EVENT = 24; // of the protocol: test, bench and main blocks
let client; // undefined while no server runs

function setting(name) {
    return vscode.workspace.getConfiguration("tl").get(name);
}

// Whether the program can be run at all: the language client would say little of why not.
async function findProgram(program) {
    try {
        await promisify(execFile)(program, ["version"]);
        return true;
    } catch (problem) {
        const open = "Open Settings";
        const answer = await vscode.window.showErrorMessage(
            `tl: \`${program}\` does not run (${problem.code || problem.message}). Install tl, or say where it is: tl.path.`, open);
        if (answer === open) vscode.commands.executeCommand("workbench.action.openSettings", "tl.path");
        return false;
    }
}

async function startServer() {
    const program = setting("path");
    if (!(await findProgram(program))) return;
    client = new LanguageClient("tl", "tl", { command: program, args: ["lsp"] }, { documentSelector: [{ language: "tl" }] });
    await client.start();
}

async function stopServer() {
    const running = client;
    client = undefined;
    if (running) await running.stop();
}

async function restartServer() {
    await stopServer();
    await startServer();
}

// The words behind `tl` for a command on a file.
function wordsOf(command, file, filter) {
    const words = [command];
    const device = setting("device");
    if (device && command !== "check") words.push("--device", device);
    if (filter) words.push("--filter", filter);
    return [...words, file];
}

async function runCommand(command, uri, filter) {
    uri = uri || (vscode.window.activeTextEditor && vscode.window.activeTextEditor.document.uri);
    if (!uri || uri.scheme !== "file") {
        vscode.window.showErrorMessage(`tl: only a file can be the program of tl ${command}: save this text first.`);
        return;
    }
    const document = vscode.workspace.textDocuments.find((open) => open.uri.toString() === uri.toString());
    if (document && document.isDirty && !(await document.save())) return;
    const folder = vscode.workspace.getWorkspaceFolder(uri);
    const cwd = folder ? folder.uri.fsPath : path.dirname(uri.fsPath);
    const words = wordsOf(command, uri.fsPath, filter);
    const name = `${command} ${path.basename(uri.fsPath)}${filter ? ` (${filter})` : ""}`;
    const execution = new vscode.ProcessExecution(setting("path"), words, { cwd });
    // What `tl check` finds in open texts is shown by the server already.
    const task = new vscode.Task({ type: "tl", command, file: uri.fsPath, filter }, folder || vscode.TaskScope.Workspace, name,
                                 "tl", execution, command === "check" ? [] : ["$tl"]);
    task.presentationOptions = { clear: true, showReuseMessage: false };
    if (command === "profile") showPageAfter(task, path.join(cwd, `${path.basename(uri.fsPath, ".tl")}.profile.html`));
    await vscode.tasks.executeTask(task);
}

// Opens what `tl profile` has written once the task has ended well.
function showPageAfter(task, page) {
    const waiting = vscode.tasks.onDidEndTaskProcess((event) => {
        const ended = event.execution.task.definition;
        if (ended.command !== "profile" || ended.file !== task.definition.file) return;
        waiting.dispose();
        if (event.exitCode === 0) vscode.env.openExternal(vscode.Uri.file(page));
    });
}

function lens(line, title, command, ...more) {
    return new vscode.CodeLens(new vscode.Range(line, 0, line, 0), { title, command: `tl.${command}`, arguments: more });
}

// Buttons: for the file above its first line, for each test and benchmark above its own.
async function provideCodeLenses(document) {
    if (!client || !setting("buttons") || document.uri.scheme !== "file") return [];
    const symbols = (await client.sendRequest("textDocument/documentSymbol",
                                              { textDocument: { uri: document.uri.toString() } })) || [];
    const lenses = [lens(0, "$(play) Run", "run", document.uri), lens(0, "$(check) Check", "check", document.uri)];
    const blocks = symbols.filter((symbol) => symbol.kind === SYMBOL_EVENT).map((symbol) => {
        const { line, character } = symbol.range.start;
        return { name: symbol.name, line, word: /^\w+/.exec(document.lineAt(line).text.slice(character))[0] };
    });
    if (blocks.some((block) => block.word === "test")) lenses.push(lens(0, "$(beaker) Test", "test", document.uri));
    for (const block of blocks) {
        if (block.word === "test") lenses.push(lens(block.line, "$(beaker) Run Test", "test", document.uri, block.name));
        if (block.word === "bench") lenses.push(lens(block.line, "$(dashboard) Run Benchmarks", "bench", document.uri));
    }
    return lenses;
}

async function activate(context) {
    for (const command of ["run", "check", "test", "bench", "profile"])
        context.subscriptions.push(vscode.commands.registerCommand(`tl.${command}`, (uri, filter) =>
            // A button of the title bar gives more than the file behind it.
            runCommand(command, uri, typeof filter === "string" ? filter : undefined)));
    context.subscriptions.push(
        vscode.commands.registerCommand("tl.restart", restartServer),
        vscode.languages.registerCodeLensProvider({ language: "tl" }, { provideCodeLenses }),
        vscode.workspace.onDidChangeConfiguration((change) => change.affectsConfiguration("tl.path") && restartServer()));
    await startServer();
}

module.exports = { activate, deactivate: stopServer };
