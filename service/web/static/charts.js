// Draws every chart of a page from the JSON beside it, in the colours of the page.
//
// Vega's expressions run in its interpreter (`ast`), never through eval: the page's content
// security policy forbids that, because names in the data come from commits.
"use strict";

const dark = window.matchMedia("(prefers-color-scheme: dark)");
const fine = window.matchMedia("(pointer: fine)");

function coloured(spec) {
  const style = getComputedStyle(document.documentElement);
  const ink = style.getPropertyValue("--soft").trim();
  const config = spec.config || {};
  return {
    ...spec,
    config: {
      ...config,
      font: style.getPropertyValue("--font").trim(),
      axis: { ...config.axis, labelColor: ink, titleColor: ink },
      legend: { ...config.legend, labelColor: ink },
    },
  };
}

// With a mouse, a drag across the commits chooses a range; a finger scrolls the page instead.
function draggable(spec) {
  const layer = (spec.layer || []).map((part) =>
    part.name === "commits"
      ? { ...part, params: [{ name: "chosen", select: { type: "interval", encodings: ["x"] } }] }
      : part,
  );
  return { ...spec, layer };
}

async function draw(place) {
  const read = JSON.parse(place.querySelector("script").textContent);
  const trend = place.closest("[data-trend]");
  const zooms = trend !== null && fine.matches;
  const target = place.querySelector(".drawn") || document.createElement("div");
  target.className = "drawn";
  place.append(target);
  const { view } = await window.vegaEmbed(target, coloured(zooms ? draggable(read) : read), {
    actions: false,
    ast: true,
    defaultStyle: false,
    renderer: "svg",
    tooltip: { disableDefaultStyle: true },
  });
  // Lines, bands and the brush have no words of their own; those of the page say what they show.
  for (const mark of target.querySelectorAll("[role=graphics-symbol]:not([aria-label])")) {
    mark.setAttribute("aria-hidden", "true");
  }
  if (trend) picksTwo(view, target, trend);
  if (zooms) zoomsIn(view, target, read.datasets.points);
  place.dataset.state = "drawn";
  performance.mark("forkwatch-drawn");
}

function shaOf(point) {
  return decodeURIComponent(point.link.split("/").pop());
}

// Two marks chosen with Shift are compared, the older one as the baseline.
function picksTwo(view, target, trend) {
  const said = trend.querySelector("[data-picked]");
  let under = null;
  let first = null;
  view.addEventListener("mouseover", (_event, item) => {
    under = item && item.datum && item.datum.link ? item.datum : null;
  });
  const choose = (event) => {
    if (!event.shiftKey || !under) return;
    // Else the mark's own link would open.
    event.preventDefault();
    event.stopPropagation();
    if (!first || first.commit === under.commit) {
      first = under;
      said.textContent = `${first.commit} is chosen; hold Shift and choose what to compare it with.`;
      return;
    }
    const pair = [first, under].sort((one, other) => one.place - other.place);
    const chosen = new URLSearchParams({ baseline: shaOf(pair[0]), candidate: shaOf(pair[1]) });
    window.location.assign(`${trend.dataset.compare}&${chosen}`);
  };
  if (target.chooses) target.removeEventListener("click", target.chooses, true);
  target.chooses = choose;
  target.addEventListener("click", choose, true);
}

// The page of the range has every commit in it, also those that were too many to draw here.
function zoomsIn(view, target, points) {
  let range = null;
  view.addSignalListener("chosen", (_name, value) => {
    range = value && value.place ? value.place : null;
  });
  target.onpointerup = () => {
    if (!range) return;
    const [low, high] = [Math.min(...range), Math.max(...range)];
    const inside = points.filter((point) => point.place >= low && point.place <= high);
    if (inside.length < 2) return;
    const ends = { from: shaOf(inside[0]), to: shaOf(inside[inside.length - 1]) };
    window.location.assign(`?${new URLSearchParams(ends)}`);
  };
}

// A chart inside closed details has no width to be drawn at; it is drawn when they open.
function drawVisible() {
  for (const place of document.querySelectorAll("[data-chart]:not([data-state])")) {
    if (place.clientWidth === 0) continue;
    place.dataset.state = "drawing";
    draw(place).catch((error) => {
      place.dataset.state = "failed";
      console.error("chart:", error);
    });
  }
}

function redraw() {
  for (const place of document.querySelectorAll("[data-state]")) delete place.dataset.state;
  drawVisible();
}

drawVisible();
document.addEventListener("toggle", drawVisible, true);
dark.addEventListener("change", redraw);
