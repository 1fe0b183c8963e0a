// CodeMirror with what a template needs and no more: HTML in colours, the places of variables, lines, undoing, and the line of a
// mistake. Loaded when an editor is shown; its colours are those of look.css. Tab leaves the editor, as it leaves any field.
import { history, historyKeymap, standardKeymap } from "@codemirror/commands";
import { StreamLanguage, syntaxHighlighting } from "@codemirror/language";
import { html } from "@codemirror/legacy-modes/mode/xml";
import { EditorState, type Extension, StateEffect, StateField } from "@codemirror/state";
import {
  Decoration,
  type DecorationSet,
  EditorView,
  keymap,
  lineNumbers,
  MatchDecorator,
  ViewPlugin,
} from "@codemirror/view";
import { classHighlighter } from "@lezer/highlight";

type Given = { parent: HTMLElement; text: string; isHtml: boolean; label: string; changed: (text: string) => void };
export type Editor = {
  setText: (text: string) => void;
  /** Line from 1; null: no mistake. */
  showMistake: (line: number | null) => void;
  destroy: () => void;
};

export function createEditor({ parent, text, isHtml, label, changed }: Given): Editor {
  const view = new EditorView({
    parent,
    state: EditorState.create({
      doc: text,
      extensions: [
        ...[lineNumbers(), history(), keymap.of([...standardKeymap, ...historyKeymap]), EditorView.lineWrapping],
        ...[isHtml ? HTML : [], VARIABLES, MISTAKE, LOOK],
        EditorView.contentAttributes.of({
          "aria-label": label,
          tabindex: "0",
          spellcheck: "false",
          autocapitalize: "off",
        }),
        EditorView.updateListener.of((update) => update.docChanged && changed(update.state.doc.toString())),
      ],
    }),
  });
  return {
    setText: (next) => {
      const before = view.state.doc;
      if (before.toString() !== next) view.dispatch({ changes: { from: 0, to: before.length, insert: next } });
    },
    showMistake: (line) => view.dispatch({ effects: mistakeAt.of(line) }),
    destroy: () => view.destroy(),
  };
}

const LOOK = EditorView.theme({
  ".cm-gutters": { backgroundColor: "transparent", color: "var(--ink-3)", border: "none" },
});
const HTML: Extension = [StreamLanguage.define(html), syntaxHighlighting(classHighlighter)];

const holes = new MatchDecorator({
  regexp: /\{\{\{?[^{}]*\}?\}\}/g,
  decoration: ([found]) => Decoration.mark({ class: /^\{\{\{?[#/]|^\{\{else/.test(found) ? "hole control" : "hole" }),
});
const VARIABLES = ViewPlugin.define(
  (view) => {
    const plugin = {
      marks: holes.createDeco(view),
      update: (update: Parameters<typeof holes.updateDeco>[0]) => {
        plugin.marks = holes.updateDeco(update, plugin.marks);
      },
    };
    return plugin;
  },
  { decorations: ({ marks }) => marks },
);

const mistakeAt = StateEffect.define<number | null>();
const MISTAKE = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update: (marks, { effects, changes, state }) => {
    const effect = effects.find((one) => one.is(mistakeAt));
    if (effect === undefined) return marks.map(changes);
    const line = effect.value as number | null;
    if (line === null || line < 1 || line > state.doc.lines) return Decoration.none;
    return Decoration.set([Decoration.line({ class: "mistake" }).range(state.doc.line(line).from)]);
  },
  provide: (field) => EditorView.decorations.from(field),
});
