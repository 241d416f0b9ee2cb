// Returns a sentence for each text of the page that is clipped, overlaps another text or is too
// faint. Matplotlib writes the letters of a text as paths in a group with the id `text_N`.
() => {
  const MIN_CONTRAST = 4.5; // WCAG 2, level AA
  const GAP = 4; // pixels between two texts of a plot
  const SLACK = 1.5; // pixels that antialiasing and rounding may add
  const defects = new Set();
  const view = document.documentElement;
  const short = (text) => JSON.stringify(text.trim().replace(/\s+/g, " ").slice(0, 60));
  const describe = (box) => `at ${Math.round(box.left)}, ${Math.round(box.top)}`;

  function isHidden(element) {
    // Text for screen readers and the link for keyboards are invisible on purpose.
    if (element.matches(".skip")) return true;
    const style = getComputedStyle(element);
    if (style.visibility === "hidden" || Number(style.opacity) === 0 || style.clipPath === "inset(50%)") return true;
    return element.parentElement ? isHidden(element.parentElement) : false;
  }

  // Boxes of the texts: one per line of a text node and one per text of a plot.
  const texts = [];
  const walker = document.createTreeWalker(view, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const parent = node.parentElement;
    if (!node.data.trim() || !parent || parent.closest("script, style, title, desc, metadata, option")) continue;
    if (!parent.checkVisibility() || isHidden(parent)) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const box of range.getClientRects()) if (box.width > 0.5 && box.height > 0.5) texts.push({ node, parent, box, text: node.data });
  }
  for (const group of document.querySelectorAll("g[id^='text_']")) {
    const comment = [...group.childNodes].find((node) => node.nodeType === Node.COMMENT_NODE);
    const box = group.getBoundingClientRect();
    if (comment && box.width > 0.5) texts.push({ node: group, parent: group, box, text: comment.data, isPath: true });
  }

  // The part of a text that its ancestors do not clip, and whether scrolling shows the rest.
  for (const item of texts) {
    let { left, right, top, bottom } = item.box;
    let mayScroll = false;
    for (let element = item.parent; element && element !== view; element = element.parentElement) {
      const style = getComputedStyle(element);
      const frame = element.getBoundingClientRect();
      if (element instanceof SVGSVGElement || (element.tagName === "svg" && style.overflow !== "visible")) {
        if (item.box.left < frame.left - SLACK || item.box.right > frame.right + SLACK || item.box.top < frame.top - SLACK || item.box.bottom > frame.bottom + SLACK)
          defects.add(`${short(item.text)} ${describe(item.box)} is outside of its picture`);
      }
      if (style.display === "inline" || style.overflowX === "visible") continue;
      const isScrolled = style.overflowX === "auto" || style.overflowX === "scroll";
      if (isScrolled) {
        mayScroll = true;
        if (item.box.left + element.scrollLeft < frame.left - SLACK) defects.add(`${short(item.text)} ${describe(item.box)} is left of its scrolled box`);
      } else if (!mayScroll && (item.box.left < frame.left - SLACK || item.box.right > frame.right + SLACK || item.box.bottom > frame.bottom + SLACK)) {
        defects.add(`${short(item.text)} ${describe(item.box)} is clipped by <${element.tagName.toLowerCase()} class="${element.getAttribute("class") ?? ""}">`);
      }
      left = Math.max(left, frame.left); right = Math.min(right, frame.right);
      top = Math.max(top, frame.top); bottom = Math.min(bottom, frame.bottom);
    }
    item.seen = { left, right, top, bottom };
    if (!mayScroll && (item.box.left < -SLACK || item.box.right > view.clientWidth + SLACK))
      defects.add(`${short(item.text)} ${describe(item.box)} is outside of the window`);
  }
  if (view.scrollWidth > view.clientWidth + SLACK) defects.add(`the page is ${view.scrollWidth} pixels wide in a window of ${view.clientWidth}`);

  // The boxes of form fields and buttons do not grow with their text.
  for (const field of document.querySelectorAll("button, select, input")) {
    if (field.checkVisibility() && !isHidden(field) && field.scrollWidth > field.clientWidth + SLACK)
      defects.add(`the field ${short(field.textContent || field.value || field.placeholder || "")} is ${field.scrollWidth - field.clientWidth} pixels too narrow`);
  }

  // Overlapping texts; letters are lower than their line.
  const boxes = texts.map((item) => {
    const { left, right, top, bottom } = item.seen;
    // Labels of ticks need a gap, or two numbers read as one.
    if (item.isPath) return { ...item, seen: { left: left - GAP / 2, right: right + GAP / 2, top: top + 0.5, bottom: bottom - 0.5 } };
    const inset = Math.min(4, (bottom - top) * 0.2);
    return { ...item, seen: { left: left + 1, right: right - 1, top: top + inset, bottom: bottom - inset } };
  }).filter(({ seen }) => seen.right > seen.left && seen.bottom > seen.top);
  boxes.sort((first, second) => first.seen.top - second.seen.top);
  const isPinned = (element) => element && (["sticky", "fixed"].includes(getComputedStyle(element).position) || isPinned(element.parentElement));
  for (let place = 0; place < boxes.length; place += 1) {
    const first = boxes[place];
    for (let next = place + 1; next < boxes.length && boxes[next].seen.top < first.seen.bottom; next += 1) {
      const second = boxes[next];
      if (first.node === second.node || Math.min(first.seen.right, second.seen.right) <= Math.max(first.seen.left, second.seen.left)) continue;
      if (isPinned(first.parent) !== isPinned(second.parent)) continue;
      defects.add(`${short(first.text)} overlaps ${short(second.text)} ${describe(second.box)}`);
    }
  }

  // Contrast with the nearest opaque background.
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const channels = (colour) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); return [...canvas.getImageData(0, 0, 1, 1).data]; };
  const luminance = ([red, green, blue]) => [red, green, blue].map((value) => value / 255).map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4)).reduce((sum, value, place) => sum + value * [0.2126, 0.7152, 0.0722][place], 0);
  const page = channels(matchMedia("(prefers-color-scheme: dark)").matches && getComputedStyle(view).colorScheme.includes("dark") ? "#121212" : "#fff");
  const cache = new Map();
  const background = (element) => {
    if (!element) return page;
    if (cache.has(element)) return cache.get(element);
    const colour = channels(getComputedStyle(element).backgroundColor);
    const result = colour[3] > 127 ? colour : background(element.parentElement);
    cache.set(element, result);
    return result;
  };
  for (const { parent, text, box, isPath } of texts) {
    if (isPath || parent.closest("svg") || parent.closest("[disabled]")) continue;
    const values = [luminance(channels(getComputedStyle(parent).color)), luminance(background(parent))].sort((first, second) => second - first);
    const contrast = (values[0] + 0.05) / (values[1] + 0.05);
    if (contrast < MIN_CONTRAST) defects.add(`${short(text)} ${describe(box)} has a contrast of ${contrast.toFixed(1)}`);
  }

  // Labels of a graph on a canvas.
  for (const root of document.querySelectorAll(".graph-canvas")) {
    const graph = root._cyreg?.cy;
    if (!graph) { defects.add("the graph was not drawn"); continue; }
    const nodes = graph.nodes().map((node) => ({ text: node.data("text"), own: node.boundingBox({ includeLabels: false, includeEdges: false, includeOverlays: false }), all: node.boundingBox({ includeLabels: true, includeEdges: false, includeOverlays: false }) }));
    for (const { text, own, all } of nodes) if (all.w > own.w + 2 || all.h > own.h + 2) defects.add(`the box ${short(text)} of the graph is smaller than its text`);
    nodes.sort((first, second) => first.all.y1 - second.all.y1);
    nodes.forEach((first, place) => {
      for (let next = place + 1; next < nodes.length && nodes[next].all.y1 < first.all.y2 - 2; next += 1) {
        const second = nodes[next];
        if (Math.min(first.all.x2, second.all.x2) > Math.max(first.all.x1, second.all.x1) + 2) defects.add(`the boxes ${short(first.text)} and ${short(second.text)} of the graph overlap`);
      }
    });
  }
  return [...defects];
}
