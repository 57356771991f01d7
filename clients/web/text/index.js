// The page's texts in the reader's language. A translation is a copy of en.js and one line here.

import { text as en } from './en.js';

// Loaded on demand: { de: () => import('./de.js') }.
const OTHERS = {};

export let text = en;

/** Load the first language that the browser asks for and this page has; return its name. */
export async function loadText(wanted = navigator.languages ?? []) {
  for (const language of wanted) {
    const [name] = language.toLowerCase().split('-');
    if (name === 'en') {
      break;
    }
    if (OTHERS[name]) {
      text = (await OTHERS[name]()).text;
      return name;
    }
  }
  return 'en';
}
