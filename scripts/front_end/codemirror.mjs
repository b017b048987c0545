// What the console's editor (static/console/editor.js) takes from CodeMirror; esbuild leaves out the rest.
export { autocompletion, closeBrackets, closeBracketsKeymap } from "@codemirror/autocomplete";
export { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
export { json } from "@codemirror/lang-json";
export { yaml } from "@codemirror/lang-yaml";
export {
  bracketMatching, foldGutter, foldKeymap, HighlightStyle, indentOnInput, syntaxHighlighting,
} from "@codemirror/language";
export { lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
export { searchKeymap } from "@codemirror/search";
export { Compartment, EditorState } from "@codemirror/state";
export {
  drawSelection, EditorView, highlightActiveLine, highlightActiveLineGutter, keymap, lineNumbers,
} from "@codemirror/view";
export { tags } from "@lezer/highlight";
