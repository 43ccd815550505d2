// The parts of Observable Plot that static/chart.js uses; the bundle has these and no others.
export {areaY, barY, dot, line, plot, ruleX, ruleY, text, tickY} from "@observablehq/plot";
