// Search, buttons that copy, light and dark, the menu of narrow windows.
"use strict";

const root = document.documentElement.dataset.root;
const input = document.getElementById("search"), results = document.getElementById("results");

// How well an entry answers a word; 0: not at all. Names count more than what is said of them.
function scoreWord(word, title, text) {
    if (title === word) return 100;
    if (title.startsWith(word)) return 60 - Math.min(title.length - word.length, 20);
    const at = title.indexOf(word);
    if (at > 0) return /\w/.test(title[at - 1]) ? 20 : 35;
    return text.includes(word) ? 5 : 0;
}

function search(query) {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    if (words.length === 0) return [];
    const found = [];
    for (const [title, address, kind, text] of SEARCH) {
        const scores = words.map((word) => scoreWord(word, title.toLowerCase(), text.toLowerCase()));
        if (scores.every((score) => score > 0)) found.push({ title, address, kind, text, score: scores.reduce((sum, score) => sum + score) });
    }
    return found.sort((a, b) => b.score - a.score).slice(0, 12);
}

function element(name, text) {
    const made = document.createElement(name);
    made.textContent = text;
    return made;
}

function showResults() {
    const found = search(input.value);
    results.replaceChildren(...found.map((entry, i) => {
        const link = document.createElement("a");
        link.href = root + entry.address;
        link.role = "option";
        link.ariaSelected = i === 0;
        link.append(element("i", entry.kind), element("b", entry.title), element("span", entry.text));
        return link;
    }));
    if (found.length === 0) results.append(element("p", "Nothing is called so."));
    results.hidden = input.value.trim() === "";
}

function selectResult(step) {
    const links = [...results.querySelectorAll("a")];
    const now = links.findIndex((link) => link.ariaSelected === "true");
    const next = Math.max(0, Math.min(links.length - 1, now + step));
    links.forEach((link, i) => { link.ariaSelected = i === next; });
    links[next]?.scrollIntoView({ block: "nearest" });
}

input.addEventListener("input", showResults);
input.addEventListener("focus", showResults);
input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
        event.preventDefault();
        selectResult(event.key === "ArrowDown" ? 1 : -1);
    } else if (event.key === "Enter") {
        results.querySelector("a[aria-selected=true]")?.click();
        results.hidden = true;
    } else if (event.key === "Escape") {
        input.blur();
        results.hidden = true;
    }
});
document.addEventListener("click", (event) => {
    if (!event.target.closest(".search")) results.hidden = true;
    if (event.target.closest("#results a, #pages a")) {
        results.hidden = true;
        toggleMenu(false);
    }
});
document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || /^(INPUT|TEXTAREA)$/.test(document.activeElement.tagName)) return;
    event.preventDefault();
    input.focus();
});

// What is copied is the program: no prompts, no answers.
function textOf(block) {
    const entered = [...block.querySelectorAll(".entered")];
    return entered.length > 0 ? entered.map((line) => line.textContent.trimEnd()).join("\n") + "\n" : block.querySelector(".source").textContent;
}

// For browsers that give pages from files no clipboard.
function copyBySelection(text) {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
}

async function copy(button) {
    const text = textOf(button.parentElement);
    try {
        await navigator.clipboard.writeText(text);
    } catch (refused) {
        copyBySelection(text);
    }
    button.textContent = "Copied";
    button.classList.add("done");
    setTimeout(() => {
        button.textContent = "Copy";
        button.classList.remove("done");
    }, 1500);
}

for (const button of document.querySelectorAll(".copy")) button.addEventListener("click", () => copy(button));

document.getElementById("theme").addEventListener("click", () => {
    const dark = getComputedStyle(document.documentElement).colorScheme === "dark";
    document.documentElement.dataset.theme = dark ? "light" : "dark";
    try { localStorage.setItem("theme", dark ? "light" : "dark"); } catch (refused) { /* it lasts as long as the page */ }
});

const menu = document.getElementById("menu"), pages = document.getElementById("pages");
function toggleMenu(open) {
    pages.classList.toggle("open", open);
    menu.ariaExpanded = pages.classList.contains("open");
}
menu.addEventListener("click", () => toggleMenu());
