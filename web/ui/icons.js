// Line icons, 24 units square, drawn with the text's colour.

import { html, svg } from '../lit.js';

/** @param {unknown} shape */
const icon = (shape) => html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">${shape}</svg>`;

export const icons = {
  plus: icon(svg`<path d="M12 5v14M5 12h14"/>`),
  search: icon(svg`<circle cx="11" cy="11" r="6.5"/><path d="m16 16 4.5 4.5"/>`),
  sidebar: icon(svg`<rect x="3.5" y="5" width="17" height="14" rx="2.5"/><path d="M9.5 5v14"/>`),
  command: icon(svg`<path d="M9 9h6v6H9ZM9 9V6.8A2.3 2.3 0 1 0 6.8 9H9ZM15 9h2.2A2.3 2.3 0 1 0 15 6.8V9ZM15
    15v2.2a2.3 2.3 0 1 0 2.2-2.2H15ZM9 15H6.8A2.3 2.3 0 1 0 9 17.2V15Z"/>`),
  menu: icon(svg`<path d="M4 7h16M4 12h11M4 17h16"/>`),
  close: icon(svg`<path d="m6 6 12 12M18 6 6 18"/>`),
  pin: icon(svg`<path d="M9 4h6l-.8 6.2L17 13v2H7v-2l2.8-2.8L9 4ZM12 15v5.5"/>`),
  pencil: icon(svg`<path d="m5 19 .9-4L16.4 4.6a1.6 1.6 0 0 1 2.3 0l.7.7a1.6 1.6 0 0 1 0 2.3L9 18l-4 1Z"/>`),
  trash: icon(svg`<path d="M5 7h14M10 7V4.5h4V7M7 7l.8 12.5h8.4L17 7M10.3 11v5M13.7 11v5"/>`),
  archive: icon(svg`<path d="M4 5h16v4H4ZM5.5 9v10.5h13V9M10 12.5h4"/>`),
  unarchive: icon(svg`<path d="M4 5h16v4H4ZM5.5 9v10.5h13V9M12 17v-5M9.5 14l2.5-2.5 2.5 2.5"/>`),
  send: icon(svg`<path d="M12 19.5V5M5.5 11.2 12 4.7l6.5 6.5"/>`),
  stop: icon(svg`<rect x="7" y="7" width="10" height="10" rx="2" class="solid"/>`),
  image: icon(svg`<rect x="4" y="5" width="16" height="14" rx="2.5"/><circle cx="9" cy="10" r="1.6"/>
    <path d="m5 17.5 4.8-4.6 3 2.8 3-3.2 4 4"/>`),
  code: icon(svg`<path d="m8 7-5 5 5 5M16 7l5 5-5 5M13.5 5l-3 14"/>`),
  copy: icon(svg`<rect x="9" y="9" width="10.5" height="10.5" rx="2"/>
    <path d="M5.5 15h-.2A1.3 1.3 0 0 1 4 13.7V5.8A1.8 1.8 0 0 1 5.8 4h7.9A1.3 1.3 0 0 1 15 5.3v.2"/>`),
  check: icon(svg`<path d="m5 12.5 4.5 4.5L19 7.5"/>`),
  cross: icon(svg`<path d="m7 7 10 10M17 7 7 17"/>`),
  chevron: icon(svg`<path d="m9 6 6 6-6 6"/>`),
  down: icon(svg`<path d="M12 5v14M6 13l6 6 6-6"/>`),
  folder: icon(svg`<path d="M3.5 7.5A2 2 0 0 1 5.5 5.5h3.7l2 2.3h7.3a2 2 0 0 1 2 2v7a2 2 0 0 1-2 2h-13a2 2 0 0
    1-2-2Z"/>`),
  steps: icon(svg`<path d="m4 7 1.5 1.5L8 6M4 16.5 5.5 18 8 15.5M11.5 7.5h8M11.5 17h8"/>`),
  note: icon(svg`<path d="M6 4h12v10.5L13.5 20H6ZM13.5 20v-5.5H18M9 8.5h6M9 12h3"/>`),
  terminal: icon(svg`<rect x="3.5" y="5" width="17" height="14" rx="2.5"/><path d="m7.5 10 2.5 2-2.5 2M12.5 14.5h4"/>`),
  globe: icon(svg`<circle cx="12" cy="12" r="8"/>
    <path d="M4 12h16M12 4c2.5 2.3 3.5 5 3.5 8s-1 5.7-3.5 8c-2.5-2.3-3.5-5-3.5-8s1-5.7 3.5-8Z"/>`),
  wrench: icon(svg`<path d="M14.5 6.5a4 4 0 0 1 5-1.3l-2.7 2.7 1.5 1.5 2.5-2.5a4 4 0 0 1-5.3 5L8 19.5a1.8 1.8 0
    0 1-2.6 0l-.4-.4a1.8 1.8 0 0 1 0-2.6l7.6-7.4a4 4 0 0 1 1.9-2.6Z"/>`),
  thought: icon(svg`<path d="M8.5 15.5a4.3 4.3 0 0 1-.7-8.5A5 5 0 0 1 17 7.8a4 4 0 0 1-1 7.7Z"/>
    <circle cx="8.5" cy="19" r="1" class="solid"/>`),
  warning: icon(svg`<path d="M12 4.5 21 19.5H3ZM12 10v4.5M12 17v.3"/>`),
  sun: icon(svg`<circle cx="12" cy="12" r="3.8"/>
    <path d="M12 3v2M12 19v2M3 12h2M19 12h2M5.7 5.7l1.4 1.4M16.9 16.9l1.4 1.4M18.3 5.7l-1.4 1.4M7.1 16.9l-1.4 1.4"/>`),
  moon: icon(svg`<path d="M19.5 14.5A8 8 0 0 1 9.5 4.5a8 8 0 1 0 10 10Z"/>`),
  auto: icon(svg`<rect x="3.5" y="5" width="17" height="11.5" rx="2"/><path d="M9 20h6M12 16.5V20"/>`),
  download: icon(svg`<path d="M12 4.5v10M7.5 10.5l4.5 4.5 4.5-4.5M5 19.5h14"/>`),
  agent: icon(svg`<circle cx="12" cy="5" r="2.2"/><circle cx="6" cy="18.5" r="2.2"/>
    <circle cx="18" cy="18.5" r="2.2"/>
    <path d="M12 7.2v4.3M6 16.3v-2.2c0-1.5 1-2.6 2.6-2.6h6.8c1.6 0 2.6 1.1 2.6 2.6v2.2"/>`),
  wrap: icon(svg`<path d="M4 6.5h16M4 12h13a3 3 0 0 1 0 6h-4M4 17.5h5M15 15.5l-2.5 2.5 2.5 2.5"/>`),
  again: icon(svg`<path d="M19 12a7 7 0 1 1-2.2-5.1M17.5 3.5v4h-4"/>`),
  memory: icon(svg`<path d="M6.5 4.5h11a1.5 1.5 0 0 1 1.5 1.5v14l-7-4.2L5 20V6a1.5 1.5 0 0 1 1.5-1.5Z"/>
    <path d="M9 9h6"/>`),
  history: icon(svg`<path d="M5 12a7 7 0 1 0 2.2-5.1M6.5 3.5v4h4M12 8.5V12l2.5 2"/>`),
  sliders: icon(svg`<path d="M4 7h9M17 7h3M4 17h3M11 17h9"/><circle cx="15" cy="7" r="2"/>
    <circle cx="9" cy="17" r="2"/>`),
  shield: icon(svg`<path d="M12 3.5 19 6v5.5c0 4.3-2.9 7.4-7 9-4.1-1.6-7-4.7-7-9V6ZM12 8.5v4M12 15.5v.3"/>`),
  microphone: icon(svg`<rect x="9" y="3.5" width="6" height="11" rx="3"/>
    <path d="M5.5 11.5a6.5 6.5 0 0 0 13 0M12 18v3"/>`),
  tag: icon(svg`<path d="M4 5.5A1.5 1.5 0 0 1 5.5 4h6l8.3 8.3a1.5 1.5 0 0 1 0 2.1l-5.4 5.4a1.5 1.5 0 0 1-2.1
    0L4 11.5Z"/><circle cx="8.2" cy="8.2" r="1.2"/>`),
  clip: icon(svg`<path d="m19 11.5-7.2 7.2a4.3 4.3 0 0 1-6.1-6.1l7.6-7.6a2.9 2.9 0 0 1 4.1 4.1l-7.5 7.5a1.4 1.4
    0 0 1-2-2l6.8-6.8"/>`),
  file: icon(svg`<path d="M7 3.5h6.5L18 8v12.5H7ZM13.5 3.5V8H18"/>`),
  undo: icon(svg`<path d="M8.5 5 4.5 9l4 4M4.5 9H14a5 5 0 0 1 0 10H9"/>`),
  person: icon(svg`<circle cx="12" cy="8" r="3.5"/><path d="M5 19.5c.6-3.6 3.2-5.5 7-5.5s6.4 1.9 7 5.5"/>`),
  people: icon(svg`<circle cx="9" cy="8.5" r="3"/>
    <path d="M3 19c.4-3.3 2.6-5 6-5s5.6 1.7 6 5M15.5 5.8a3 3 0 0 1 0 5.4M17.5 14.4c2 .7 3.2 2.2 3.5 4.6"/>`),
  key: icon(svg`<circle cx="8" cy="15.5" r="4"/><path d="m11 12.5 8-8M16 7.5l2.5 2.5M13.5 10l2 2"/>`),
  more: icon(svg`<circle cx="5.5" cy="12" r="1.6" class="solid"/><circle cx="12" cy="12" r="1.6" class="solid"/>
    <circle cx="18.5" cy="12" r="1.6" class="solid"/>`),
  bell: icon(svg`<path d="M5 17.5 6.5 16v-5a5.5 5.5 0 0 1 11 0v5l1.5 1.5ZM10.2 20.5h3.6"/>`),
  pause: icon(svg`<path d="M9 7v10M15 7v10"/>`),
  resume: icon(svg`<path d="M8 5.5v13l10-6.5Z" class="solid"/>`),
};

/** Navi's mark: a needle that points the way. */
export const mark = html`<svg class="mark" viewBox="0 0 32 32" aria-hidden="true" focusable="false">${svg`
  <path class="mark-a" d="M16 2.5c1.3 7.2 4.2 10.7 13.5 13.5C20.2 18.8 17.3 22.3 16 29.5Z"/>
  <path class="mark-b" d="M16 2.5C14.7 9.7 11.8 13.2 2.5 16c9.3 2.8 12.2 6.3 13.5 13.5Z"/>`}</svg>`;

/** @type {Record<string, keyof typeof icons>} */
const TOOL_ICONS = {
  filesystem: 'folder', todo: 'steps', scratchpad: 'note', terminal: 'terminal', ssh: 'terminal',
  web_search: 'globe', web_fetch: 'globe', view_image: 'image', spawn_agent: 'agent', memory_search: 'memory',
  memory_save: 'memory', memory_forget: 'memory', switch_profile: 'again',
};

/** @param {string} tool */
export const toolIcon = (tool) => icons[TOOL_ICONS[tool] ?? 'wrench'];
