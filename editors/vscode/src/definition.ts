// Which server to offer, from settings and folders alone: nothing here needs the editor.

/** The settings that count. */
export interface Settings {
  autoRegister: boolean;
  registerServerId: string;
  command: string;
  folder: string;
  /** What the chat participant is called: `mcpwire` or `mybusiness`. */
  chatName: string;
}

/** How a server is started. */
export interface Definition {
  label: string;
  command: string;
  args: string[];
  env: Record<string, string>;
  version: string;
}

const PARTS = ["prompts", "resources", "data"];
const SAMPLE = "sample:";

/** The folder to serve: the one that is set, else the first of the workspace that looks like one, else the sample. */
export function target(
  settings: Settings,
  workspace: readonly string[],
  isFolder: (path: string) => boolean,
): string {
  const set = settings.folder.trim();
  if (set !== "") return set;
  const found = workspace.find((folder) => PARTS.some((part) => isFolder(`${folder}/${part}`)));
  return found ?? SAMPLE;
}

/** The servers to offer: one, or none if it was not asked for. */
export function definitions(
  settings: Settings,
  registered: boolean,
  workspace: readonly string[],
  isFolder: (path: string) => boolean,
): Definition[] {
  if (!registered) return [];
  const served = target(settings, workspace, isFolder);
  // A path that begins with neither a dot nor a slash would be taken for something else.
  const place = served === SAMPLE ? served : `folder:${served}`;
  return [
    {
      label: settings.registerServerId.trim() || "mybusiness",
      command: settings.command.trim() || "mcpwire",
      args: ["connect", place],
      env: {},
      version: "1.0.0",
    },
  ];
}
