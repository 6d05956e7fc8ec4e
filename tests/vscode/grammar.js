// Compares what the grammar of editors says of programs with the lexer's tokens: `node grammar.js MODULES GRAMMAR`, the output
// of the program `tokens` on standard input. Prints how many files agree, or the places that do not.
"use strict";
const fs = require("fs");
const path = require("path");
const { createRequire } = require("module");

const [modules, grammarPath] = process.argv.slice(2);
const load = createRequire(path.join(modules, "package.json"));
const textmate = load("vscode-textmate");
const oniguruma = load("vscode-oniguruma");
const COMPARED = ["comment", "string", "keyword", "number"];
const KEYWORD = /^(keyword\.(other|control\.(conditional|loop|exception)|operator\.word)|constant\.language(\.boolean)?)\.tl$/;

async function readGrammar() {
    await oniguruma.loadWASM(fs.readFileSync(load.resolve("vscode-oniguruma/release/onig.wasm")));
    const registry = new textmate.Registry({
        onigLib: Promise.resolve({
            createOnigScanner: (patterns) => new oniguruma.OnigScanner(patterns),
            createOnigString: (text) => new oniguruma.OnigString(text),
        }),
        loadGrammar: async () => textmate.parseRawGrammar(fs.readFileSync(grammarPath, "utf8"), grammarPath),
    });
    return registry.loadGrammar("source.tl");
}

// What the innermost scope says that tells texts from code.
function kindOf(scopes) {
    for (const scope of [...scopes].reverse()) {
        if (scope.startsWith("comment.")) return "comment";
        if (scope.startsWith("constant.other.placeholder.")) return "spec";
        if (scope.startsWith("string.") || scope.startsWith("constant.character.") || scope.startsWith("punctuation.section.")) return "string";
        if (scope.startsWith("constant.numeric.")) return "number";
        if (KEYWORD.test(scope)) return "keyword";
        if (scope.startsWith("meta.interpolation.")) return "";
    }
    return "";
}

// The kind of every UTF-16 unit, and whether the text ends in a comment or string.
function kindsOfGrammar(grammar, text) {
    const kinds = new Array(text.length).fill("");
    let stack = textmate.INITIAL, at = 0;
    for (const line of text.split("\n")) {
        const result = grammar.tokenizeLine(line, stack);
        for (const token of result.tokens)
            kinds.fill(kindOf(token.scopes), at + token.startIndex, at + Math.min(token.endIndex, line.length));
        stack = result.ruleStack;
        at += line.length + 1;
    }
    return { kinds, open: stack.depth > 1 };
}

function kindsOfLexer(text, bytes, tokens) {
    // Places of tokens are bytes; texts of JavaScript have UTF-16 units.
    const unitAt = (offset) => bytes.subarray(0, offset).toString("utf8").length;
    const kinds = new Array(text.length).fill("comment");
    for (const [kind, begin, end] of tokens) kinds.fill(kind, unitAt(begin), unitAt(end));
    return kinds;
}

function readTokens() {
    const files = [];
    for (const line of fs.readFileSync(0, "utf8").split("\n")) {
        const head = /^file (.*), (whole|broken)$/.exec(line);
        if (head) files.push({ name: head[1], whole: head[2] === "whole", tokens: [] });
        else if (line) files[files.length - 1].tokens.push([line.split(" ")[0], ...line.split(" ").slice(1).map(Number)]);
    }
    return files;
}

function differences(grammar, file) {
    const bytes = fs.readFileSync(file.name), text = bytes.toString("utf8");
    const wanted = kindsOfLexer(text, bytes, file.tokens);
    const { kinds, open } = kindsOfGrammar(grammar, text);
    const found = [];
    let line = 1;
    for (let i = 0; i < text.length && found.length < 3; i++) {
        if (text[i] === "\n") line++;
        const want = COMPARED.includes(wanted[i]) || wanted[i] === "spec" ? wanted[i] : "";
        if (want !== kinds[i] && text[i].trim() && text[i] !== "\ufeff")
            found.push(`${file.name}:${line}: ${JSON.stringify(text.slice(i, i + 20))} is ${wanted[i]} to the lexer, ${kinds[i] || "other"} to the grammar`);
    }
    if (open) found.push(`${file.name}: ends inside a scope`);
    return found;
}

async function main() {
    const grammar = await readGrammar();
    const files = readTokens().filter((file) => file.whole);
    const found = files.flatMap((file) => differences(grammar, file));
    console.log(found.length === 0 ? `${files.length} files agree` : found.slice(0, 40).join("\n"));
}

main();
