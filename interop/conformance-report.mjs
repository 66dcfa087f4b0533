// Turns the conformance suite's result files into one line per scenario and a sum.
//
//   conformance-report.mjs RESULTS REQUIREMENTS.yaml EXPECTED-FAILURES.txt
import { outcomeOf, readExpected, Report, scenariosOf } from "./conformance-results.mjs";

const [results, requirements, expectedFile] = process.argv.slice(2);
const expected = readExpected(expectedFile);
const report = new Report();

for (const { scenario, scored } of scenariosOf(requirements)) {
  const name = scored ? scenario : `${scenario} (not scored)`;
  const { fault, warnings } = outcomeOf(results, scenario);
  const known = expected.get(scenario);
  expected.delete(scenario);
  if (fault && known) report.line("known", name, `${known} (${fault})`);
  else if (fault) report.line("FAIL", name, fault);
  else if (known) report.line("FAIL", name, "passes, but is listed in the list of expected failures: take it out");
  else report.line("ok", name, warnings);
}
for (const scenario of expected.keys()) {
  report.line("FAIL", scenario, "is listed in the list of expected failures, but there is no such scenario");
}
report.end();
