#!/usr/bin/env node
// The client commands alone: the program of the npm package postern-mail-cli, for machines that Postern itself does not run on.
import { readFileSync } from "node:fs";
import { Command, CommanderError } from "commander";
import { addClientCommands, processSurroundings, wordsFor } from "./cli.ts";
import { STATUS } from "./exit.ts";

const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
  version: string;
};

const program = new Command("postern")
  .description("Sends, lists and explains mail of a Postern, from anywhere")
  .version(version, "--version", "print which version this is")
  .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? STATUS.ok : STATUS.usage));
addClientCommands(program, processSurroundings());

program.parseAsync(wordsFor(program, process.argv.slice(2)), { from: "user" }).catch((error: unknown) => {
  if (error instanceof CommanderError) return; // said already, and the status is set
  process.stderr.write(`postern: ${(error as Error).message}\n`);
  process.exit(STATUS.failed);
});
