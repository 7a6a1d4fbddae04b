// Draws the figures of a page: each holds its Vega specification, which is drawn as it is, as wide as the page has room.
// Expressions go through Vega's interpreter, so that the page needs no permission to make code from text.
const [parser, views, interpreter, dataflow] = ["vega-parser", "vega-view", "vega-interpreter", "vega-dataflow"].map(vegaRequire);
for (const part of ["vega-transforms", "vega-view-transforms", "vega-encode"]) Object.assign(dataflow.transforms, vegaRequire(part));
const drawn = Array.from(document.querySelectorAll("figure.drawn"), (figure) => {
  const box = figure.querySelector("div"), spec = JSON.parse(figure.querySelector("script").textContent);
  const view = new views.View(parser.parse(spec, null, { ast: true }), { expr: interpreter.expressionInterpreter, renderer: "svg", container: box, hover: false, logLevel: 0 });
  return { box, view };
});
// Twice: which labels an axis has follows from its width, and its width from its labels.
const fill = () => Promise.all(drawn.map(({ box, view }) => view.width(Math.max(box.clientWidth, 200)).runAsync().then(() => view.resize().runAsync())));
addEventListener("resize", fill);
fill();
