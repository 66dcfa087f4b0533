import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { definitions, target, type Settings } from "../src/definition.js";

const settings: Settings = { autoRegister: true, registerServerId: "mybusiness", command: "mcpwire", folder: "", chatName: "mcpwire" };
const has = (...paths: string[]) => (path: string) => paths.includes(path);

test("the folder that is set is served", () => {
  assert.equal(target({ ...settings, folder: " /srv/library " }, ["/home"], has("/home/data")), "/srv/library");
});

test("else the first folder of the workspace that looks like one", () => {
  assert.equal(target(settings, ["/a", "/b", "/c"], has("/b/prompts", "/c/data")), "/b");
});

test("else the sample", () => {
  assert.equal(target(settings, ["/a"], has()), "sample:");
  assert.deepEqual(definitions(settings, true, [], has())[0]?.args, ["connect", "sample:"]);
});

test("a definition starts mcpwire on stdio", () => {
  const expected = {
    label: "mybusiness",
    command: "mcpwire",
    args: ["connect", "folder:/b"],
    env: {},
    version: "1.0.0",
  };
  assert.deepEqual(definitions(settings, true, ["/b"], has("/b/data")), [expected]);
});

test("settings that are blank fall back", () => {
  const [definition] = definitions({ ...settings, registerServerId: " ", command: "" }, true, [], has());
  assert.equal(definition?.label, "mybusiness");
  assert.equal(definition?.command, "mcpwire");
});

test("nothing is offered unless it is registered", () => {
  assert.deepEqual(definitions(settings, false, ["/b"], has("/b/data")), []);
});

test("the manifest declares the provider, the commands and the settings that the code uses", () => {
  const manifest = JSON.parse(readFileSync("package.json", "utf8"));
  const code = readFileSync("src/extension.ts", "utf8");
  const [provider] = manifest.contributes.mcpServerDefinitionProviders;
  assert.deepEqual(provider, { id: "mybusiness-local", label: "My Business Embedded Server" });
  assert(code.includes(`"${provider.id}"`));
  for (const { command } of manifest.contributes.commands) {
    assert(code.includes(command.replace("mybusinessMCP.", "${SECTION}.")), command);
  }
  const declared = Object.keys(manifest.contributes.configuration.properties).sort();
  assert.deepEqual(declared, Object.keys(settings).map((name) => `mybusinessMCP.${name}`).sort());
});
