// Compares what the conformance suite says of servers asked directly and through mcpwire, in the same era and across.
//
//   conformance-eras.mjs RESULTS REQUIREMENTS-FOLDER EXPECTED-FAILURES-FOLDER
//
// RESULTS has a folder per revision, and in it `direct` and one folder per column: `same COLUMN` and `seam COLUMN`.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { outcomeOf, readExpected, Report, scenariosOf } from "./conformance-results.mjs";

const [results, requirements, lists] = process.argv.slice(2);
const report = new Report();
const sums = [];

for (const revision of readdirSync(results).sort()) {
  const scenarios = scenariosOf(join(requirements, `${revision}.yaml`));
  const expected = readExpected(join(lists, `expected-failures-seam-${revision}.txt`));
  const columns = readdirSync(join(results, revision)).sort();
  for (const column of columns) {
    const folder = join(results, revision, column);
    const passed = { true: 0, false: 0 };
    for (const { scenario, scored } of scenarios) {
      const outcome = outcomeOf(folder, scenario);
      if (!outcome.fault) passed[scored] += 1;
      if (column === "direct") continue; // `conformance` is the judge of that
      const direct = outcomeOf(join(results, revision, "direct"), scenario);
      const known = column.startsWith("seam") && expected.get(scenario);
      judge(`${revision} ${column} ${scenario}`, outcome, direct, known);
    }
    const scored = scenarios.filter((scenario) => scenario.scored).length;
    sums.push(`${revision} ${column}: ${passed.true} of ${scored} scored, ${passed.false} of ${scenarios.length - scored} others`);
  }
  for (const scenario of expected.keys()) {
    if (scenarios.some((known) => known.scenario === scenario)) continue;
    report.line("FAIL", `${revision} ${scenario}`, "is listed as an expected failure, but there is no such scenario");
  }
}
console.log(sums.join("\n"));
report.end();

function judge(name, { fault, warnings }, direct, known) {
  if (fault && known) return report.line("known", name, `${known} (${fault})`);
  if (known) return report.line("FAIL", name, "passes, but is listed as an expected failure: take it out");
  if (fault && direct.fault) return report.line("ok", name, `fails directly, too (${direct.fault})`);
  report.line(fault ? "FAIL" : "ok", name, fault || warnings);
}
