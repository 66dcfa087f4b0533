// Judges what the conformance suite says of servers behind hubs.
//
//   conformance-hub.mjs RESULTS REQUIREMENTS-FOLDER EXPECTED-FAILURES-FOLDER
//
// RESULTS has a folder per revision, and in it `alone SERVER` (behind mcpwire, without a hub), `one SERVER` (a hub of one)
// and `three SERVER` (a hub of three, of which this one comes first).
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { outcomeOf, readExpected, Report, scenariosOf } from "./conformance-results.mjs";

const [results, requirements, lists] = process.argv.slice(2);
const report = new Report();
const sums = [];

for (const revision of readdirSync(results).sort()) {
  if (!statSync(join(results, revision)).isDirectory()) continue;
  const scenarios = scenariosOf(join(requirements, `${revision}.yaml`));
  const list = join(lists, `expected-failures-hub-${revision}.txt`);
  const expected = existsSync(list) ? readExpected(list) : new Map();
  for (const column of readdirSync(join(results, revision)).sort()) {
    const [kind, server] = column.split(" ");
    const passed = { true: 0, false: 0 };
    for (const { scenario, scored } of scenarios) {
      const outcome = outcomeOf(join(results, revision, column), scenario);
      if (!outcome.fault) passed[scored] += 1;
      if (kind === "alone" && !scored) continue;
      const alone = outcomeOf(join(results, revision, `alone ${server}`), scenario);
      const known = kind !== "alone" && expected.get(`${kind} ${scenario}`);
      judge(`${revision} ${column} ${scenario}`, outcome, !scored && alone.fault, known);
    }
    const scored = scenarios.filter((scenario) => scenario.scored).length;
    sums.push(`${revision} ${column}: ${passed.true} of ${scored} scored, ${passed.false} of ${scenarios.length - scored} others`);
  }
}
console.log(sums.join("\n"));
report.end();

function judge(name, { fault, warnings }, alone, known) {
  if (known && fault) return report.line("known", name, `${known} (${fault})`);
  if (known) return report.line("FAIL", name, "passes, but is listed as an expected failure: take it out");
  if (fault && alone) return report.line("ok", name, `fails without a hub, too (${alone})`);
  report.line(fault ? "FAIL" : "ok", name, fault || warnings);
}
