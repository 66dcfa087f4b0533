// Turns the conformance suite's results about a client into one line per scenario and a sum.
//
//   conformance-client.mjs RESULTS
//
// RESULTS has a folder per revision, and in it what each scenario left.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { outcomeOf, Report } from "./conformance-results.mjs";

const [results] = process.argv.slice(2);
const report = new Report();
for (const revision of readdirSync(results).sort()) {
  const folder = join(results, revision);
  const asked = readdirSync(folder).filter((name) => name.endsWith(".out"));
  for (const scenario of asked.map((name) => name.slice(0, -".out".length))) {
    const { fault, warnings } = outcomeOf(folder, scenario, "");
    report.line(fault ? "FAIL" : "ok", `${revision} ${scenario}`, fault || warnings);
  }
}
report.end();
