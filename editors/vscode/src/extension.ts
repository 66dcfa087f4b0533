// The extension: offers the server to the editor, and again whenever a setting or the workspace changes.
import { statSync } from "node:fs";
import * as vscode from "vscode";
import { definitions, type Settings } from "./definition.js";

const PROVIDER = "mybusiness-local";
const SECTION = "mybusinessMCP";

function settings(): Settings {
  const section = vscode.workspace.getConfiguration(SECTION);
  return {
    autoRegister: section.get("autoRegister", true),
    registerServerId: section.get("registerServerId", "mybusiness"),
    command: section.get("command", "mcpwire"),
    folder: section.get("folder", ""),
  };
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

export function activate(context: vscode.ExtensionContext): void {
  const changed = new vscode.EventEmitter<void>();
  let registered = settings().autoRegister;
  const register = (wanted: boolean) => {
    registered = wanted;
    changed.fire();
  };

  const provider: vscode.McpServerDefinitionProvider<vscode.McpStdioServerDefinition> = {
    onDidChangeMcpServerDefinitions: changed.event,
    provideMcpServerDefinitions: () => {
      const workspace = (vscode.workspace.workspaceFolders ?? []).map((folder) => folder.uri.fsPath);
      return definitions(settings(), registered, workspace, isFolder).map(
        ({ label, command, args, env, version }) =>
          new vscode.McpStdioServerDefinition(label, command, args, env, version),
      );
    },
  };

  context.subscriptions.push(
    changed,
    vscode.lm.registerMcpServerDefinitionProvider(PROVIDER, provider),
    vscode.commands.registerCommand(`${SECTION}.registerServer`, () => register(true)),
    vscode.commands.registerCommand(`${SECTION}.unregisterServer`, () => register(false)),
    vscode.workspace.onDidChangeWorkspaceFolders(() => changed.fire()),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration(`${SECTION}.autoRegister`)) register(settings().autoRegister);
      else if (event.affectsConfiguration(SECTION)) changed.fire();
    }),
  );
}
