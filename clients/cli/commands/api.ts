// `postern api GET /v1/emails`: any request, as it is.
import type { Command } from "commander";
import { CliError } from "../exit.ts";
import { acting, readInput, readNamed, type Session, type Surroundings, withGlobals } from "../session.ts";

const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];
const WITHOUT_BODY = ["GET", "HEAD"];

export function addApi(program: Command, around: Surroundings): void {
  withGlobals(program.command("api"))
    .description("ask the API for anything: postern api POST /v1/templates --data @template.json")
    .argument("<method>", METHODS.join(", "))
    .argument("<path>", "from /v1, with its query")
    .option("--data <json>", "the body; @file reads it from a file, - from standard input")
    .action(acting(around, ask));
}

async function ask(session: Session, verb: string, path: string, { data }: { data?: string }): Promise<void> {
  const method = verb.toUpperCase();
  if (!METHODS.includes(method)) throw new CliError(`there is no method '${verb}': ${METHODS.join(", ")}`);
  if (!path.startsWith("/")) throw new CliError(`the path begins with a slash: /${path}`);
  if (data !== undefined && WITHOUT_BODY.includes(method))
    throw new CliError(`a ${method} request has no body: leave --data out, and put values into the path (?limit=5)`);
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
    throw new CliError(`--data is not JSON: ${(error as Error).message}`);
  }
  const answer = await session.client().request(method, path, json === undefined ? {} : { json });
  if (answer === null) session.out.say("The answer has no body.");
  else session.out.data(answer);
}
