// Turns the conformance suite's result files into one line per scenario and a sum.
//
//   conformance-report.mjs RESULTS REQUIREMENTS.yaml EXPECTED-FAILURES.txt
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const { parse } = createRequire(new URL("./.peers/", import.meta.url))("yaml");
const [results, requirements, expectedFile] = process.argv.slice(2);

// One scenario per line, the reason behind a `#`.
const expected = new Map();
for (const line of readFileSync(expectedFile, "utf8").split("\n")) {
  const [scenario, reason] = line.split("#").map((part) => part.trim());
  if (scenario) expected.set(scenario, reason || "no reason given");
}

/** Why the scenario is not passed, or nothing. */
function fault(checks) {
  if (!checks) return "no result: the suite did not run it";
  const failures = checks.filter((check) => check.status === "FAILURE");
  if (failures.length > 0) return failures.map((check) => `${check.id}: ${check.errorMessage ?? ""}`).join("; ");
  // The schema check is added to every scenario: it says nothing about what the scenario is for.
  const shown = checks.some((check) => check.status === "SUCCESS" && check.id !== "wire-schema-valid");
  if (!shown) return "EMPTY: no check of the scenario succeeded";
}

function checksOf(scenario) {
  const folder = readdirSync(results).find((name) => new RegExp(`^server-${scenario}-\\d{4}-`).test(name));
  try {
    return JSON.parse(readFileSync(join(results, folder, "checks.json"), "utf8"));
  } catch {
    return undefined;
  }
}

const { server, not_scored: others = [] } = parse(readFileSync(requirements, "utf8"));
const unscored = others.filter(({ leg }) => leg === "server").map(({ scenario }) => scenario);
const counts = { ok: 0, FAIL: 0, known: 0 };

function report(verdict, scenario, note) {
  counts[verdict] += 1;
  const name = unscored.includes(scenario) ? `${scenario} (not scored)` : scenario;
  console.log(`${verdict.padEnd(4)} ${name}${note ? `  ${note.replace(/\s+/g, " ").slice(0, 300)}` : ""}`);
}

for (const scenario of [...server, ...unscored]) {
  const checks = checksOf(scenario);
  const why = fault(checks);
  const known = expected.get(scenario);
  expected.delete(scenario);
  if (why && known) report("known", scenario, `${known} (${why})`);
  else if (why) report("FAIL", scenario, why);
  else if (known) report("FAIL", scenario, "passes, but is listed in expected-failures.txt: take it out");
  else {
    const warnings = checks.filter((check) => check.status === "WARNING");
    report("ok", scenario, warnings.map((check) => `warning: ${check.errorMessage ?? check.id}`).join("; "));
  }
}
for (const scenario of expected.keys()) {
  report("FAIL", scenario, "is listed in expected-failures.txt, but there is no such scenario");
}

if (counts.known > 0) console.log(`${counts.known} known to fail`);
console.log(`${counts.ok} passed, ${counts.FAIL} failed`);
process.exit(counts.FAIL === 0 && counts.ok > 0 ? 0 : 1);
