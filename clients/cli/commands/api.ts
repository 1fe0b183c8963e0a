// `postern api GET /v1/emails`: any request, as it is.
import type { Command } from "commander";
import { CliError } from "../exit.ts";
import { acting, readInput, readNamed, type Session, type Surroundings, withGlobals } from "../session.ts";

export function addApi(program: Command, around: Surroundings): void {
  withGlobals(program.command("api"))
    .description("ask the API for anything: postern api POST /v1/templates --data @template.json")
    .argument("<method>", "GET, POST, PUT, PATCH or DELETE")
    .argument("<path>", "from /v1, with its query")
    .option("--data <json>", "the body; @file reads it from a file, - from standard input")
    .action(acting(around, ask));
}

async function ask(session: Session, method: string, path: string, { data }: { data?: string }): Promise<void> {
  if (!path.startsWith("/")) throw new CliError(`the path begins with a slash: /${path}`);
  const text =
    data === "-"
      ? (await readInput(session)).toString()
      : data?.startsWith("@")
        ? readNamed(data.slice(1), "--data").toString()
        : data;
  let json: unknown;
  try {
    json = text === undefined ? undefined : JSON.parse(text);
  } catch (error) {
    throw new CliError(`--data is no JSON: ${(error as Error).message}`);
  }
  session.out.data(await session.client().request(method, path, json === undefined ? {} : { json }));
}
