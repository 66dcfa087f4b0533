// Compares what the conformance suite says of servers asked directly and through a bridge.
//
//   conformance-compare.mjs RESULTS REQUIREMENTS.yaml EXPECTED-FAILURES.txt
//
// RESULTS has one folder per column, named `SERVER direct`, `SERVER stdio` or `SERVER http`.
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { outcomeOf, readExpected, Report, scenariosOf } from "./conformance-results.mjs";

const [results, requirements, expectedFile] = process.argv.slice(2);
const scenarios = scenariosOf(requirements);
const expected = readExpected(expectedFile);
const report = new Report();

// What the HTTP side of a bridge decides by itself, whatever is behind it: the bridge has to pass these even
// if the server does not.
const OF_THE_FRONT = new Set([
  "dns-rebinding-protection",
  "server-session-lifecycle",
  "server-sse-multiple-streams",
  "server-sse-polling",
]);

/** How a column fares with a scenario that has this outcome there and that one when the server is asked directly. */
function judge(name, scenario, { fault, warnings }, direct) {
  const known = expected.get(name);
  expected.delete(name);
  if (fault && known) return report.line("known", name, `${known} (${fault})`);
  if (known) return report.line("FAIL", name, "passes, but is listed as an expected failure: take it out");
  if (OF_THE_FRONT.has(scenario) || !direct.fault) {
    return report.line(fault ? "FAIL" : "ok", name, fault || warnings);
  }
  if (fault) return report.line("ok", name, `fails directly, too (${fault})`);
  report.line("FAIL", name, `passes, but fails directly (${direct.fault})`);
}

const columns = readdirSync(results).sort();
const sums = [];
for (const column of columns) {
  const [server, kind] = column.split(" ");
  const passed = { true: 0, false: 0 };
  for (const { scenario, scored } of scenarios) {
    const outcome = outcomeOf(join(results, column), scenario);
    if (!outcome.fault) passed[scored] += 1;
    // Asked directly a server has to pass, or the comparison is worth little.
    const direct = kind === "direct" ? { fault: "" } : outcomeOf(join(results, `${server} direct`), scenario);
    judge(`${column} ${scenario}`, scenario, outcome, direct);
  }
  const scored = scenarios.filter((scenario) => scenario.scored).length;
  sums.push(`${column}: ${passed.true} of ${scored} scored, ${passed.false} of ${scenarios.length - scored} others`);
}
for (const name of expected.keys()) {
  const [server, column] = name.split(" ");
  const known = scenarios.some(({ scenario }) => name === `${server} ${column} ${scenario}`);
  const asked = existsSync(join(results, `${server} ${column}`));
  if (asked || !known) report.line("FAIL", name, "is listed as an expected failure, but there is no such scenario");
}
console.log(sums.join("\n"));
report.end();
