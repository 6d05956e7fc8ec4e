// Runs the extension as Visual Studio Code would, with a module `vscode` that records: `node extension.js BUNDLE TL FOLDER`.
// Prints "sound" when everything held.
"use strict";
const assert = require("assert");
const fs = require("fs");
const path = require("path");
const { spawnSync } = require("child_process");
const mock = require("./mock");

const [bundle, tl, folder] = process.argv.slice(2);
const settings = { "tl.path": tl, "tl.device": "", "tl.buttons": true };
const state = mock.create(settings);
const extension = require(bundle);

function open(name, text) {
    const file = path.join(folder, name);
    fs.writeFileSync(file, text);
    const document = mock.createDocument(file, text);
    state.documents.push(document);
    return document;
}

// The diagnostics that the server publishes for a document that is opened now.
function diagnosticsOf(document) {
    return new Promise((resolve) => {
        const waiting = state.diagnosed.event((uri) => {
            if (uri !== document.uri.toString()) return;
            waiting.dispose();
            resolve(state.diagnostics.get(uri));
        });
        state.documentOpened.fire(document);
    });
}

async function press(lens) {
    const known = state.tasks.length;
    await state.commands[lens.command.command](...lens.command.arguments);
    assert.strictEqual(state.tasks.length, known + 1);
    return state.tasks[known];
}

function runTask(task) {
    const { process: program, args, options } = task.execution;
    return spawnSync(program, args, { cwd: options.cwd, encoding: "utf8", env: { ...process.env, NO_COLOR: "1" } });
}

async function testDiagnostics() {
    const found = await diagnosticsOf(open("wrong.tl", "let a = zeros([2, 3])\nlet b = a @ a\n"));
    assert.strictEqual(found.length, 1);
    assert.match(found[0].message, /^cannot multiply float32\[2, 3\] by float32\[2, 3\]/);
    assert.deepStrictEqual([found[0].range.start.line, found[0].range.start.character, found[0].severity], [1, 8, 0]);
    assert.deepStrictEqual(await diagnosticsOf(open("right.tl", "let a = 1\n")), []);
}

const PROGRAM = `print("begun")
// test comment { }
let text = "
test inside_a_string { }
"
test first { assert_eq(1, 1) }
  test "second of all" { assert(true) }
bench quick { 1 + 1 }
main { print("main") }
`;

async function testLenses() {
    const document = open("program.tl", PROGRAM);
    assert.deepStrictEqual(await diagnosticsOf(document), []);
    const lenses = await state.lenses[0].provideCodeLenses(document);
    assert.deepStrictEqual(lenses.map((lens) => [lens.range.start.line, lens.command.title.replace(/\$\(\w+\) /, "")]),
                           [[0, "Run"], [0, "Check"], [0, "Test"], [5, "Run Test"], [6, "Run Test"], [7, "Run Benchmarks"]]);
    const [run, check, testAll, , testSecond, bench] = lenses;
    let task = await press(run);
    assert.deepStrictEqual([task.execution.process, task.execution.args, task.execution.options.cwd, task.matchers],
                           [tl, ["run", document.fileName], folder, ["$tl"]]);
    assert.strictEqual(document.isDirty, false, "it is saved first");
    assert.strictEqual(runTask(task).stdout, "begun\nmain\n");
    task = await press(check);
    assert.deepStrictEqual([runTask(task).status, task.matchers], [0, []]);
    assert.match(runTask(await press(testAll)).stdout, /2 passed/);
    const second = runTask(await press(testSecond)).stdout;
    assert.match(second, /ok +second of all\n1 passed/);
    assert.doesNotMatch(second, /first/);
    assert.match(runTask(await press(bench)).stdout, /quick/);
    settings["tl.buttons"] = false;
    assert.deepStrictEqual(await state.lenses[0].provideCodeLenses(document), []);
    settings["tl.buttons"] = true;
}

async function testSettings() {
    const document = state.documents[state.documents.length - 1];
    settings["tl.device"] = "cpu";
    await state.commands["tl.run"](document.uri);
    assert.deepStrictEqual(state.tasks.pop().execution.args, ["run", "--device", "cpu", document.fileName]);
    // The title bar gives the file and more; the palette gives nothing.
    await state.commands["tl.test"](document.uri, { groupId: 1 });
    assert.deepStrictEqual(state.tasks.pop().execution.args, ["test", "--device", "cpu", document.fileName]);
    await state.commands["tl.check"]();
    assert.match(state.problems.pop(), /only a file can be the program of tl check/);
    state.folder = { uri: { fsPath: path.dirname(folder) } };
    await state.commands["tl.run"](document.uri);
    assert.strictEqual(state.tasks.pop().execution.options.cwd, path.dirname(folder));
    state.folder = undefined;
    settings["tl.device"] = "";
}

async function testProfile() {
    const document = open("slow.tl", "print(sum(ones([10])))\n");
    await state.commands["tl.profile"](document.uri);
    const task = state.tasks.pop();
    assert.strictEqual(runTask(task).status, 0);
    state.taskEnded.fire({ exitCode: 0, execution: { task: { name: "another", definition: {} } } });
    assert.deepStrictEqual(state.opened, []);
    state.taskEnded.fire({ exitCode: 0, execution: { task } });
    assert.deepStrictEqual(state.opened, [path.join(folder, "slow.profile.html")]);
    assert.ok(fs.existsSync(state.opened[0]), "tl profile writes the page where it is looked for");
}

// The matcher of the manifest reads what tl writes.
function testMatcher(manifest) {
    const wrong = path.join(folder, "wrong.tl");
    const lines = spawnSync(tl, ["run", wrong], { encoding: "utf8", env: { ...process.env, NO_COLOR: "1" } }).stderr.split("\n");
    const [head, place] = manifest.contributes.problemMatchers[0].pattern.map((row) => new RegExp(row.regexp));
    assert.deepStrictEqual(head.exec(lines[0]).slice(1, 3), ["error", "shape"]);
    assert.deepStrictEqual(place.exec(lines[1]).slice(1), [wrong, "2", "9"]);
}

async function testNoProgram() {
    settings["tl.path"] = path.join(folder, "no-such-program");
    await state.commands["tl.restart"]();
    assert.match(state.problems.pop(), /no-such-program` does not run \(ENOENT\)\. .* tl\.path/);
    assert.deepStrictEqual(await state.lenses[0].provideCodeLenses(state.documents[0]), []);
    settings["tl.path"] = tl;
    await state.commands["tl.restart"]();
    assert.deepStrictEqual(state.problems, []);
}

async function main() {
    const context = { subscriptions: [], extensionPath: path.dirname(bundle), asAbsolutePath: (name) => path.join(path.dirname(bundle), name) };
    const manifest = JSON.parse(fs.readFileSync(path.join(path.dirname(bundle), "package.json")));
    await extension.activate(context);
    for (const command of manifest.contributes.commands) assert.ok(state.commands[command.command], command.command);
    await testDiagnostics();
    await testLenses();
    await testSettings();
    await testProfile();
    testMatcher(manifest);
    await testNoProgram();
    await extension.deactivate();
    console.log("sound");
}

main().catch((problem) => {
    console.log(problem.stack);
    process.exit(1);
});
