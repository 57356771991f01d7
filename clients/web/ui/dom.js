// Elements in few words. Text is always set as text, never as HTML.

/** Make an element: h('button', { class: 'x', onclick: f, 'aria-label': y }, 'text', child). */
export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined) {
      continue;
    }
    if (name.startsWith('on')) {
      element.addEventListener(name.slice(2), value);
    } else if (name in element) {
      element[name] = value;
    } else if (value !== false) {
      element.setAttribute(name, value === true ? '' : value);
    }
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

const SVG = 'http://www.w3.org/2000/svg';

/** Make an element of a drawing. */
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  Object.entries(attributes).forEach(([name, value]) => element.setAttribute(name, value));
  element.append(...children);
  return element;
}

const PATHS = {
  plus: 'M12 5v14M5 12h14',
  more: 'M5 12h.01M12 12h.01M19 12h.01',
  undo: 'M9 14 4 9l5-5M4 9h10a6 6 0 0 1 0 12h-3',
  check: 'M5 13l4 4L19 7',
  close: 'M6 6l12 12M18 6 6 18',
  gear: 'M4 7h10M18 7h2M4 17h2M10 17h10M14 4v6M6 14v6',
  heart: 'M3 12h4l3-8 4 16 3-8h4',
  disk: 'M12 4v11M7 11l5 5 5-5M5 20h14',
  up: 'M12 16V5M7 9l5-5 5 5M5 20h14',
  images: 'M4 5h13v13H4zM8 21h13V8M4 15l4-4 5 5',
  flip: 'M4 9a8 8 0 0 1 14-3l2 2M20 4v4h-4M20 15a8 8 0 0 1-14 3l-2-2M4 20v-4h4',
  camera: 'M4 8h3l2-3h6l2 3h3v11H4zM12 17a4 4 0 1 0 0-8 4 4 0 0 0 0 8z',
  place: 'M4 8V4h4M16 4h4v4M20 16v4h-4M8 20H4v-4',
  question: 'M9 9a3 3 0 1 1 4 2.8c-.7.3-1 .8-1 1.7M12 17h.01',
  trash: 'M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13',
  warning: 'M12 4 2.5 20h19zM12 10v4M12 17h.01',
};

/** Return an icon, which screen readers skip. */
export function icon(name) {
  return svg(
    'svg',
    { viewBox: '0 0 24 24', class: 'icon', 'aria-hidden': 'true', focusable: 'false' },
    svg('path', { d: PATHS[name] }),
  );
}

/** Set an element's text only if it differs, so that screen readers and layout rest. */
export function setText(element, value) {
  if (element.textContent !== value) {
    element.textContent = value;
  }
}

/** Show or hide an element. */
export function show(element, shown) {
  if (element.hidden === shown) {
    element.hidden = !shown;
  }
}

/** Show a blob in an <img>; its address lives as long as the picture. */
export function showBlob(image, blob) {
  const before = image.dataset.address;
  image.src = URL.createObjectURL(blob);
  image.dataset.address = image.src;
  if (before) {
    URL.revokeObjectURL(before);
  }
}
