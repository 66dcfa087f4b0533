// Answers questions of the chat with the server's `ask` tool: nothing here needs the editor.
import { target, type Settings } from "./definition.js";

/** The tool that answers questions. */
const TOOL = "relevant-data.ask";

/** The participants that the manifest declares, by the name they are addressed with. A setting chooses one of them. */
export const PARTICIPANTS = { mcpwire: "mcpwire.chat", mybusiness: "MyBusinessMCP" } as const;

/** What a program printed, and how it ended. */
export interface Output {
  stdout: string;
  stderr: string;
  code: number | null;
}

/** Runs a program without a shell. */
export type Run = (command: string, args: string[]) => Promise<Output>;

/** What is shown for a question. */
export interface Reply {
  markdown: string;
  /** Questions to go on with. */
  followups: string[];
  failed: boolean;
}

/** How a question is put to the server. */
export function request(
  settings: Settings,
  question: string,
  workspace: readonly string[],
  isFolder: (path: string) => boolean,
): { command: string; args: string[] } {
  const served = target(settings, workspace, isFolder);
  const place = served === "sample:" ? served : `folder:${served}`;
  return { command: settings.command.trim() || "mcpwire", args: ["call", place, TOOL, `question=${question}`] };
}

/** The answer to a question, or why there is none. */
export async function answer(
  settings: Settings,
  question: string,
  workspace: readonly string[],
  isFolder: (path: string) => boolean,
  run: Run,
): Promise<Reply> {
  if (question.trim() === "") {
    return { markdown: "Ask about the data, for example: *Which records are there?*", followups: [], failed: false };
  }
  const { command, args } = request(settings, question, workspace, isFolder);
  let output: Output;
  try {
    output = await run(command, args);
  } catch {
    return failure(`\`${command}\` cannot be started. Is mcpwire installed? The setting \`mybusinessMCP.command\` names the program.`);
  }
  const said = parse(output.stdout);
  if (said) return said;
  const reason = [...output.stderr.trim().split("\n"), ...output.stdout.trim().split("\n")].find((line) => line !== "");
  return failure(`mcpwire has no answer: ${reason ?? `it ended with code ${output.code}`}`);
}

function failure(markdown: string): Reply {
  return { markdown, followups: [], failed: true };
}

/** Reads what `mcpwire call` printed; nothing if that is no answer of the tool. */
export function parse(stdout: string): Reply | undefined {
  let said: unknown;
  try {
    said = JSON.parse(stdout);
  } catch {
    return undefined;
  }
  if (typeof said !== "object" || said === null || !("markdown" in said) || typeof said.markdown !== "string") return undefined;
  const payload = "payload" in said && typeof said.payload === "object" ? said.payload : null;
  const topics = payload !== null && "topics" in payload && Array.isArray(payload.topics) ? payload.topics : [];
  const followups = topics.filter((topic) => typeof topic === "string").map((topic) => `List ${topic}`);
  return { markdown: said.markdown, followups: followups.slice(0, 4), failed: false };
}
