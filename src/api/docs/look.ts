// How the documentation looks and what its script does: served as files of their own, so that the page's policy needs no
// exception. The script chooses the language of the examples and searches; without it everything can be read.

export const LOOK = `
:root{color-scheme:light dark;--back:#fff;--soft:#f4f4f1;--line:#deded8;--text:#1d1d1b;--dim:#5f5f58;--link:#1c4f82;--mark:#e6eef6}
@media (prefers-color-scheme:dark){:root{--back:#191918;--soft:#242423;--line:#3a3a37;--text:#ececea;--dim:#a9a9a2;--link:#86b6e6;--mark:#26384a}}
*{box-sizing:border-box}
html{scroll-padding-top:1rem}
body{margin:0;background:var(--back);color:var(--text);font:16px/1.55 system-ui,sans-serif}
a{color:var(--link)}
a:focus-visible,button:focus-visible,input:focus-visible,summary:focus-visible,pre:focus-visible{outline:3px solid #e09f3e;outline-offset:2px}
.skip{position:absolute;left:-99rem}.skip:focus{left:1rem;top:1rem;background:var(--back);padding:.5rem}
.frame{display:grid;grid-template-columns:17rem minmax(0,1fr);max-width:84rem;margin:0 auto}
.side{border-right:1px solid var(--line);padding:1.5rem 1rem 2rem 1.5rem;position:sticky;top:0;height:100vh;overflow:auto}
.side h2{font-size:.8rem;text-transform:uppercase;letter-spacing:.05em;color:var(--dim);margin:1.4rem 0 .3rem}
.side ul{list-style:none;margin:0;padding:0}.side li a{display:block;padding:.2rem .5rem;border-radius:.3rem;text-decoration:none;color:inherit}
.side li a:hover,.side li a[aria-current]{background:var(--mark)}
.brand{font-weight:700;font-size:1.2rem;text-decoration:none;color:inherit}
input[type=search]{width:100%;font:inherit;padding:.45rem .6rem;margin-top:.8rem;border:1px solid var(--line);border-radius:.3rem;background:var(--back);color:inherit}
.found li a small{display:block;color:var(--dim)}
main{padding:1.5rem 2.5rem 5rem;min-width:0}
main>p,main>ul,main>ol{max-width:46rem}
h1{font-size:1.9rem;line-height:1.2}h2{margin-top:2.4rem}
pre{background:var(--soft);border:1px solid var(--line);border-radius:.4rem;padding:.8rem 1rem;overflow:auto;font:13.5px/1.5 ui-monospace,monospace}
code{font:.9em ui-monospace,monospace;background:var(--soft);padding:.1em .25em;border-radius:.2em;overflow-wrap:anywhere}pre code{background:none;padding:0;font:inherit}
.wide{overflow-x:auto}table{border-collapse:collapse;font-size:.93rem}td code{white-space:nowrap}td p{margin:0 0 .3rem}td p:last-child{margin:0}.operation table,.event table{width:100%}.operation td:first-child,.event td:first-child{width:15rem}td td:first-child{width:11rem!important}td details{margin:.2rem 0}th,td{text-align:left;vertical-align:top;padding:.4rem .8rem .4rem 0;border-bottom:1px solid var(--line)}
.operation,.event{border-top:1px solid var(--line);padding-top:.5rem;margin-top:2.5rem}
.operation h2{margin-top:1rem}.where{font-family:ui-monospace,monospace;overflow-wrap:anywhere}.verb{font-weight:700;margin-right:.5rem}
.dim{color:var(--dim)}.need{color:#a33;font-size:.85em}@media (prefers-color-scheme:dark){.need{color:#f0a0a0}}
.tabs{display:flex;flex-wrap:wrap;gap:.3rem;margin:1rem 0 .3rem}.tabs button{font:inherit;font-size:.88rem;padding:.25rem .7rem;border:1px solid var(--line);border-radius:.3rem;background:none;color:inherit;cursor:pointer}
.tabs button[aria-pressed=true]{background:var(--mark);border-color:var(--link)}
.code pre{margin:.3rem 0}
html[data-lang=curl] pre[data-lang]:not([data-lang=curl]),html[data-lang=node] pre[data-lang]:not([data-lang=node]),html[data-lang=python] pre[data-lang]:not([data-lang=python]),html[data-lang=ruby] pre[data-lang]:not([data-lang=ruby]),html[data-lang=php] pre[data-lang]:not([data-lang=php]),html[data-lang=go] pre[data-lang]:not([data-lang=go]){display:none}
summary{cursor:pointer;margin:.6rem 0}
@media (max-width:52rem){.frame{display:block}.side{position:static;height:auto;border-right:0;border-bottom:1px solid var(--line);padding:1rem}.side nav{max-height:13rem;overflow:auto}main{padding:1rem 1rem 4rem}h1{font-size:1.5rem}}
@media (max-width:40rem){.operation :is(table,tbody,tr,td),.event :is(table,tbody,tr,td){display:block;width:auto!important}.operation td:first-child,.event td:first-child{border:0;padding-bottom:0}}
`;

export const SCRIPT = `
"use strict";
const root = document.documentElement;
const choose = (lang) => {
  root.dataset.lang = lang;
  for (const button of document.querySelectorAll(".tabs button")) {
    button.setAttribute("aria-pressed", String(button.value === lang));
  }
  try { localStorage.setItem("postern-docs-language", lang); } catch {}
};
let kept = null;
try { kept = localStorage.getItem("postern-docs-language"); } catch {}
choose(["curl", "node", "python", "ruby", "php", "go"].includes(kept) ? kept : "curl");
document.addEventListener("click", ({ target }) => {
  if (target instanceof HTMLButtonElement && target.closest(".tabs")) choose(target.value);
});
const box = document.querySelector("input[type=search]");
const list = document.querySelector(".found");
const nav = document.querySelector(".side nav");
let pages = null;
box.addEventListener("input", async () => {
  const words = box.value.toLowerCase().split(/\\s+/).filter(Boolean);
  pages ??= fetch("/docs/search.json").then((answer) => answer.json());
  const all = await pages;
  const weigh = (page) => words.every((word) => page.title.toLowerCase().includes(word)) ? 2
    : words.every((word) => (page.title + " " + page.text).toLowerCase().includes(word)) ? 1 : 0;
  const found = words.length === 0 ? [] : all.map((page) => [weigh(page), page]).filter(([weight]) => weight > 0)
    .sort((a, b) => b[0] - a[0]).slice(0, 20);
  list.replaceChildren(...found.map(([, page]) => {
    const [item, link, where] = ["li", "a", "small"].map((name) => document.createElement(name));
    link.href = page.path;
    where.textContent = page.where;
    link.append(page.title, where);
    item.append(link);
    return item;
  }));
  nav.hidden = words.length > 0;
  if (words.length > 0 && found.length === 0) list.textContent = "Nothing has all these words.";
});
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !(event.target instanceof HTMLInputElement)) { event.preventDefault(); box.focus(); }
});
`;
