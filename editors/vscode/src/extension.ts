// The extension: offers the server to the editor, and again whenever a setting or the workspace changes, and answers
// questions in the chat.
import { execFile } from "node:child_process";
import { statSync } from "node:fs";
import * as vscode from "vscode";
import { answer, PARTICIPANTS, type Run } from "./chat.js";
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
    chatName: section.get("chatName", "mcpwire"),
  };
}

function workspaceFolders(): string[] {
  return (vscode.workspace.workspaceFolders ?? []).map((folder) => folder.uri.fsPath);
}

/** Runs a program until it ends or the person has enough. */
function running(token: vscode.CancellationToken): Run {
  return (command, args) =>
    new Promise((resolve, reject) => {
      const options = { maxBuffer: 64 << 20, timeout: 120_000, windowsHide: true };
      const child = execFile(command, args, options, (error, stdout, stderr) => {
        if (error && typeof error.code === "string") reject(error);
        else resolve({ stdout, stderr, code: child.exitCode });
      });
      token.onCancellationRequested(() => child.kill());
    });
}

const answerInChat: vscode.ChatRequestHandler = async (request, _context, stream, token) => {
  const reply = await answer(settings(), request.prompt, workspaceFolders(), isFolder, running(token));
  if (token.isCancellationRequested) return {};
  if (reply.failed) return { errorDetails: { message: reply.markdown } };
  stream.markdown(reply.markdown);
  return { metadata: { followups: reply.followups } };
};

function chatParticipant(id: string): vscode.ChatParticipant {
  const participant = vscode.chat.createChatParticipant(id, answerInChat);
  participant.followupProvider = {
    provideFollowups: (result) => (result.metadata?.["followups"] ?? []).map((prompt: string) => ({ prompt })),
  };
  return participant;
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
      return definitions(settings(), registered, workspaceFolders(), isFolder).map(
        ({ label, command, args, env, version }) =>
          new vscode.McpStdioServerDefinition(label, command, args, env, version),
      );
    },
  };

  context.subscriptions.push(
    changed,
    // Which of them is shown is up to their `when` in the manifest.
    ...Object.values(PARTICIPANTS).map(chatParticipant),
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
