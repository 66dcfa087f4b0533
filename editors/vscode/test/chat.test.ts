import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { answer, parse, PARTICIPANTS, request, type Output, type Run } from "../src/chat.js";
import type { Settings } from "../src/definition.js";

const settings: Settings = {
  autoRegister: true,
  registerServerId: "mybusiness",
  command: "mcpwire",
  folder: "",
  chatName: "mcpwire",
};
const none = () => false;
const printed = (stdout: string, stderr = "", code = 0): Run => async () => ({ stdout, stderr, code });

test("a question goes to the ask tool of the folder that is served", () => {
  const question = 'Find all people with the title "Senior Developer"; rm -rf $HOME';
  const { command, args } = request({ ...settings, folder: "/srv/library" }, question, [], none);
  assert.equal(command, "mcpwire");
  assert.deepEqual(args, ["call", "folder:/srv/library", "relevant-data.ask", `question=${question}`]);
  assert.equal(request(settings, "x", [], none).args[1], "sample:");
});

test("the answer's Markdown is shown, and topics to go on with", async () => {
  const said = JSON.stringify({ markdown: "### Returned 2 records", payload: { topics: ["people", "apps", 7] } });
  const reply = await answer(settings, "list", [], none, printed(said));
  assert.deepEqual(reply, { markdown: "### Returned 2 records", followups: ["List people", "List apps"], failed: false });
});

test("what is no answer is not shown as one", () => {
  for (const stdout of ["", "text", "null", "7", "[]", "{}", '{"markdown":7}']) assert.equal(parse(stdout), undefined);
});

test("failures are explained", async () => {
  const failed = await answer(settings, "list", [], none, printed("", "mcpwire: no such folder\n", 1));
  assert.deepEqual([failed.failed, failed.markdown], [true, "mcpwire has no answer: mcpwire: no such folder"]);
  const silent = await answer(settings, "list", [], none, printed("", "", 3));
  assert(silent.markdown.includes("code 3"));
  const missing = await answer(settings, "list", [], none, async () => Promise.reject(new Error("ENOENT")));
  assert(missing.failed && missing.markdown.includes("mybusinessMCP.command"));
});

test("an empty question starts nothing", async () => {
  const reply = await answer(settings, " ", [], none, async () => assert.fail("started"));
  assert.equal(reply.failed, false);
});

test("the manifest declares one participant for each name, and a setting chooses", () => {
  const { contributes } = JSON.parse(readFileSync("package.json", "utf8"));
  const setting = contributes.configuration.properties["mybusinessMCP.chatName"];
  assert.deepEqual(setting.enum, Object.keys(PARTICIPANTS));
  assert.equal(setting.default, "mcpwire");
  const declared = contributes.chatParticipants as { id: string; name: string; when: string; isSticky: boolean }[];
  assert.deepEqual(Object.fromEntries(declared.map(({ id, name }) => [name, id])), PARTICIPANTS);
  for (const { name, when, isSticky } of declared) {
    assert.equal(when, `config.mybusinessMCP.chatName == '${name}'`);
    assert(isSticky);
  }
});

test("the program answers", { skip: process.env.MCPWIRE === undefined }, async () => {
  const run: Run = (command, args) =>
    new Promise<Output>((resolve) => {
      execFile(command, args, (error, stdout, stderr) => resolve({ stdout, stderr, code: error ? 1 : 0 }));
    });
  const using = { ...settings, command: process.env.MCPWIRE ?? "" };
  const apps = await answer(using, "Show me all applications in the Engineering department", [], none, run);
  assert(apps.markdown.includes("Customer Portal") && !apps.markdown.includes("- Ledger\n"), apps.markdown);
  const nobody = await answer(using, 'Find all people with the title "Senior Developer"', [], none, run);
  assert(nobody.markdown.includes('No record has "Senior Developer" as role'), nobody.markdown);
});
