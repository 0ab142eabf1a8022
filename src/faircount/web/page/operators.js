// Names of the organizations that run the servers, for sentences.

import { translate } from "./language.js";

/** {s1, s2}: who runs the coordinator (S1) and the aggregator (S2). */
export const operatorNames = (params) => ({
  s1: params.s1_operator || translate("noOperator"),
  s2: params.s2_operator || translate("noOperator"),
});
