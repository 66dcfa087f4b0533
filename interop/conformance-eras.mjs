// Compares what the conformance suite says of servers asked directly and through mcpwire, in the same era and across.
//
//   conformance-eras.mjs RESULTS REQUIREMENTS-FOLDER EXPECTED-FAILURES-FOLDER
//
// RESULTS has a folder per revision, and in it `direct`, `apart` (the server of the other era, without anything in
// between) and one folder per column: `same COLUMN` and `seam COLUMN`.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { outcomeOf, readExpected, Report, scenariosOf } from "./conformance-results.mjs";

const [results, requirements, lists] = process.argv.slice(2);
const report = new Report();
const sums = [];

for (const revision of readdirSync(results).sort()) {
  const scenarios = scenariosOf(join(requirements, `${revision}.yaml`));
  const expected = readSeam(join(lists, `expected-failures-seam-${revision}.txt`));
  const columns = readdirSync(join(results, revision)).sort();
  for (const column of columns) {
    const folder = join(results, revision, column);
    const passed = { true: 0, false: 0 };
    for (const { scenario, scored } of scenarios) {
      const outcome = outcomeOf(folder, scenario);
      if (!outcome.fault) passed[scored] += 1;
      if (column === "direct") continue; // `conformance` is the judge of that
      if (column === "apart") {
        if (scenario === "tools-list") judgeApart(`${revision} apart ${scenario}`, outcome);
        continue;
      }
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

/** scenario -> `{reason, checks}`: the checks of it that may fail, and no others. */
function readSeam(file) {
  const entries = [...readExpected(file)].map(([entry, reason]) => {
    const [scenario, ...checks] = entry.split(" ");
    return [scenario, { reason, checks }];
  });
  return new Map(entries);
}

/** Without the seam there would be nothing to join, and all columns would say nothing. */
function judgeApart(name, { fault }) {
  report.line(fault ? "ok" : "FAIL", name, fault ? "fails, as it has to" : "passes without mcpwire: the server is not of the other era");
}

function judge(name, { fault, failed, warnings }, direct, known) {
  if (known && fault && failed.every((check) => known.checks.includes(check))) {
    return report.line("known", name, `${known.reason} (${fault})`);
  }
  if (known && fault) return report.line("FAIL", name, `more than the list allows (${fault})`);
  if (known) return report.line("FAIL", name, "passes, but is listed as an expected failure: take it out");
  if (fault && direct.fault) return report.line("ok", name, `fails directly, too (${direct.fault})`);
  report.line(fault ? "FAIL" : "ok", name, fault || warnings);
}
