// The editor of questions: CodeMirror with SQL, completion, and one marked place. It stands in a
// shadow root, where its styles are sheets of the document and need no inline style.
import {autocompletion, completionKeymap} from "@codemirror/autocomplete";
import {defaultKeymap, history, historyKeymap} from "@codemirror/commands";
import {SQLDialect, sql} from "@codemirror/lang-sql";
import {HighlightStyle, bracketMatching, syntaxHighlighting} from "@codemirror/language";
import {StateEffect, StateField} from "@codemirror/state";
import {Decoration, EditorView, drawSelection, keymap, placeholder} from "@codemirror/view";
import {tags} from "@lezer/highlight";

const WORDS = "select from where group by having order limit offset as and or not in is null between case when " +
  "then else end distinct with union all join left on asc desc like within filter true false rollup cube " +
  "grouping sets cast extract date interval";
const dialect = SQLDialect.define({keywords: WORDS, doubleQuotedStrings: false});

const look = EditorView.theme({
  "&": {color: "var(--ink)", backgroundColor: "var(--raised)", fontSize: "0.95rem"},
  "&.cm-focused": {outline: "3px solid var(--accent)", outlineOffset: "2px"},
  ".cm-scroller": {fontFamily: "ui-monospace, monospace", lineHeight: "1.5", minHeight: "10rem"},
  ".cm-content": {padding: "0.6rem 0", caretColor: "var(--ink)"},
  ".cm-line": {padding: "0 0.8rem"},
  ".cm-cursor": {borderLeftColor: "var(--ink)"},
  ".cm-placeholder": {color: "var(--faint)"},
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground":
    {background: "color-mix(in srgb, var(--accent) 25%, transparent)"},
  ".cm-matchingBracket": {backgroundColor: "color-mix(in srgb, var(--accent) 18%, transparent)", outline: "none"},
  ".cm-wrong": {
    textDecoration: "underline wavy var(--wrong)", textUnderlineOffset: "3px", backgroundColor: "var(--wrong-ground)"
  },
  ".cm-tooltip": {backgroundColor: "var(--raised)", color: "var(--ink)", border: "1px solid var(--line)"},
  ".cm-tooltip-autocomplete ul li[aria-selected]": {backgroundColor: "var(--accent)", color: "var(--on-accent)"},
  ".cm-tooltip-autocomplete ul li[aria-selected] .cm-completionDetail": {color: "var(--on-accent)"},
  ".cm-completionDetail": {color: "var(--faint)", fontStyle: "normal"}
});
const colours = HighlightStyle.define([
  {tag: tags.keyword, color: "var(--series-0)", fontWeight: "600"},
  {tag: [tags.string, tags.special(tags.string)], color: "var(--series-2)"},
  {tag: [tags.number, tags.bool, tags.null], color: "var(--series-1)"},
  {tag: [tags.lineComment, tags.blockComment], color: "var(--faint)"}
]);

const mark = StateEffect.define();
const wrong = StateField.define({
  create: () => Decoration.none,
  update(marks, change) {
    if (change.docChanged) marks = Decoration.none;
    for (const one of change.effects) {
      if (!one.is(mark)) continue;
      const place = one.value;
      marks = place && place.from < place.to
        ? Decoration.set([Decoration.mark({class: "cm-wrong"}).range(place.from, place.to)]) : Decoration.none;
    }
    return marks;
  },
  provide: field => EditorView.decorations.from(field)
});

// Chrome would wrap a text that replaces a coloured one in a span with an inline style.
const replacing = EditorView.domEventHandlers({
  beforeinput(event, view) {
    if (event.inputType !== "insertText" || !event.data || view.composing || view.state.selection.main.empty) {
      return false;
    }
    event.preventDefault();
    view.dispatch(view.state.replaceSelection(event.data), {userEvent: "input.type", scrollIntoView: true});
    return true;
  }
});

// Options have spaces in them, as GROUP BY, but only the last word before the cursor is completed.
function completing(options) {
  return context => {
    const word = context.matchBefore(/\w+/);
    if (!word && !context.explicit) return null;
    return {from: word ? word.from : context.pos, options, validFor: /^\w*$/};
  };
}

// An editor inside `host`. `completions` are {label, type, detail}; `changed` gets each new text.
export function create(host, {text, label, describedBy, hint, completions, changed}) {
  const root = host.attachShadow({mode: "open"});
  const view = new EditorView({
    root,
    parent: root,
    doc: text,
    extensions: [
      history(), drawSelection(), bracketMatching(), sql({dialect}),
      autocompletion({override: [completing(completions)], icons: false}),
      syntaxHighlighting(colours), look, wrong, replacing, placeholder(hint), EditorView.lineWrapping,
      EditorView.contentAttributes.of({
        "aria-label": label, "aria-description": describedBy, spellcheck: "false", autocapitalize: "off"
      }),
      keymap.of([...completionKeymap, ...defaultKeymap, ...historyKeymap]),
      EditorView.updateListener.of(update => { if (update.docChanged) changed(update.state.doc.toString()); })
    ]
  });
  return {
    get text() { return view.state.doc.toString(); },
    set(value) { view.dispatch({changes: {from: 0, to: view.state.doc.length, insert: value}}); },
    mark(from, to) {
      const end = view.state.doc.length;
      view.dispatch({effects: mark.of({from: Math.min(from, end), to: Math.min(to, end)})});
    },
    clear() { view.dispatch({effects: mark.of(null)}); },
    focus() { view.focus(); }
  };
}
