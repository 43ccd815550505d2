// The part of Observable Plot that static/chart.js uses; the bundle has it and no other.
export {plot} from "@observablehq/plot";
