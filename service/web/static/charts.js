// Draws every chart of a page from the JSON beside it, in the colours of the page.
//
// Vega's expressions run in its interpreter (`ast`), never through eval: the page's content
// security policy forbids that, because names in the data come from commits.
"use strict";

const dark = window.matchMedia("(prefers-color-scheme: dark)");

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

async function draw(place) {
  const spec = JSON.parse(place.querySelector("script").textContent);
  const target = place.querySelector(".drawn") || document.createElement("div");
  target.className = "drawn";
  place.append(target);
  await window.vegaEmbed(target, coloured(spec), {
    actions: false,
    ast: true,
    defaultStyle: false,
    renderer: "svg",
    tooltip: { disableDefaultStyle: true },
  });
  place.dataset.state = "drawn";
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
