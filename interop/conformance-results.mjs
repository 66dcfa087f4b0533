// Reads what the conformance suite has written, for the reports.
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const { parse } = createRequire(new URL("./.peers/", import.meta.url))("yaml");

/** The server scenarios of a requirements file, in its order: `{scenario, scored}`. */
export function scenariosOf(requirements) {
  const { server, not_scored: others = [] } = parse(readFileSync(requirements, "utf8"));
  const unscored = others.filter(({ leg }) => leg === "server").map(({ scenario }) => scenario);
  const list = (scenarios, scored) => scenarios.map((scenario) => ({ scenario, scored }));
  return [...list(server, true), ...list(unscored, false)];
}

/** The outcome of a scenario: `fault` says why it is not passed, and is empty if it is; `failed` has the ids of its checks. */
export function outcomeOf(results, scenario, leg = "server-") {
  const checks = checksOf(results, `${leg}${scenario}`);
  const warned = (checks ?? []).filter((check) => check.status === "WARNING");
  const warnings = warned.map((check) => `warning: ${check.errorMessage ?? check.id}`).join("; ");
  const failed = (checks ?? []).filter((check) => check.status === "FAILURE").map((check) => check.id);
  return { fault: faultIn(checks), failed, warnings };
}

function checksOf(results, prefix) {
  const folder = readdirSync(results).find((name) => new RegExp(`^${prefix}-\\d{4}-`).test(name));
  try {
    return JSON.parse(readFileSync(join(results, folder, "checks.json"), "utf8"));
  } catch {
    return undefined;
  }
}

function faultIn(checks) {
  if (!checks) return "no result: the suite did not run it";
  const failures = checks.filter((check) => check.status === "FAILURE");
  if (failures.length > 0) return failures.map((check) => `${check.id}: ${check.errorMessage ?? ""}`).join("; ");
  // The schema check is added to every scenario: it says nothing about what the scenario is for.
  const shown = checks.some((check) => check.status === "SUCCESS" && check.id !== "wire-schema-valid");
  return shown ? "" : "EMPTY: no check of the scenario succeeded";
}

/** A list of expected failures: what is before the `#` of a line, with single spaces -> the reason behind it. */
export function readExpected(file) {
  const expected = new Map();
  for (const line of readFileSync(file, "utf8").split("\n")) {
    const [entry, reason] = line.split("#").map((part) => part.trim().replace(/\s+/g, " "));
    if (entry) expected.set(entry, reason || "no reason given");
  }
  return expected;
}

/** One line per verdict, and the sum at the end. */
export class Report {
  counts = { ok: 0, FAIL: 0, known: 0 };

  line(verdict, name, note) {
    this.counts[verdict] += 1;
    console.log(`${verdict.padEnd(4)} ${name}${note ? `  ${note.replace(/\s+/g, " ").slice(0, 300)}` : ""}`);
  }

  /** Prints the sum; ends the process with 0 only if something passed and nothing failed. */
  end() {
    const { ok, FAIL, known } = this.counts;
    if (known > 0) console.log(`${known} known to fail`);
    console.log(`${ok} passed, ${FAIL} failed`);
    process.exit(FAIL === 0 && ok > 0 ? 0 : 1);
  }
}
