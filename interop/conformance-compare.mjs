// Compares what the conformance suite says of servers asked directly and through a bridge.
//
//   conformance-compare.mjs RESULTS REQUIREMENTS-FOLDER EXPECTED-FAILURES.txt
//
// RESULTS has a folder per revision, and in it one per column, named `SERVER direct`, `SERVER stdio` or `SERVER http`.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { outcomeOf, readExpected, Report, scenariosOf } from "./conformance-results.mjs";

const [results, requirements, expectedFile] = process.argv.slice(2);
const expected = readExpected(expectedFile);
const report = new Report();

// What the HTTP side of a bridge decides by itself, whatever is behind it: the bridge has to pass these even
// if the server does not.
const OF_THE_FRONT = new Set([
  "dns-rebinding-protection",
  "http-custom-header-server-validation",
  "http-header-validation",
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

const sums = [];
const asked = new Set();
for (const revision of readdirSync(results).sort()) {
  const scenarios = scenariosOf(join(requirements, `${revision}.yaml`));
  const folder = join(results, revision);
  for (const column of readdirSync(folder).sort()) {
    const [server, kind] = column.split(" ");
    const passed = { true: 0, false: 0 };
    asked.add(column);
    for (const { scenario, scored } of scenarios) {
      const outcome = outcomeOf(join(folder, column), scenario);
      if (!outcome.fault) passed[scored] += 1;
      // Asked directly a server has to pass, or the comparison is worth little.
      const direct = kind === "direct" ? { fault: "" } : outcomeOf(join(folder, `${server} direct`), scenario);
      judge(`${column} ${scenario}`, scenario, outcome, direct);
    }
    const scored = scenarios.filter((scenario) => scenario.scored).length;
    const others = scenarios.length - scored;
    sums.push(`${column} (${revision}): ${passed.true} of ${scored} scored, ${passed.false} of ${others} others`);
  }
}
for (const name of expected.keys()) {
  const [server, column] = name.split(" ");
  if (asked.has(`${server} ${column}`)) {
    report.line("FAIL", name, "is listed as an expected failure, but there is no such scenario");
  }
}
console.log(sums.join("\n"));
report.end();
