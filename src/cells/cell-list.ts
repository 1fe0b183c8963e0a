// The file that lists the cells behind one door: JSON, `{"cells": [{"name", "internal", "http", "mx", "submission"}]}`. Each place is
// `host:port`, as in the settings of the cell's Postern.
import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import { type HostPort, readAddress } from "../platform/net/places.ts";
import { UsageError } from "../platform/process/usage-error.ts";

/** What nginx calls the door itself, where no cell can be asked: it answers 503. */
export const NO_CELL = "no_cell";

const PLACES = ["internal", "http", "mx", "submission"] as const;

/** Where a cell's Postern is reached, each `host:port`: POSTERN_INTERNAL, POSTERN_HTTP, POSTERN_MX and POSTERN_SUBMISSION. */
export type DoorCell = { name: string } & Record<(typeof PLACES)[number], string>;

const ADDRESS_ONLY = "nginx takes an IP address and a port here, no name.";
const NAME = /^[a-z][a-z0-9_]{0,62}$/;

/** Reads the file. Throws a UsageError that names the cell and the field. */
export function readCells(file: string): DoorCell[] {
  const { cells } = parse(file) as { cells?: unknown };
  if (!Array.isArray(cells) || cells.length === 0) throw new UsageError(`${file}: "cells" must be a list of cells.`);
  const read = cells.map((cell, index) => readCell(cell, `${file}: cells[${index}]`));
  if (read.some(({ name }) => name === NO_CELL)) throw new UsageError(`${file}: ${NO_CELL} cannot be a cell's name.`);
  const twice = read.find(({ name }, index) => read.findIndex((other) => other.name === name) !== index);
  if (twice) throw new UsageError(`${file}: there are two cells of the name ${twice.name}.`);
  return read;
}

function parse(file: string): object {
  try {
    const value: unknown = JSON.parse(readFileSync(file, "utf8"));
    if (typeof value === "object" && value !== null) return value;
  } catch (error) {
    throw new UsageError(`${file} cannot be read as JSON: ${(error as Error).message}`);
  }
  throw new UsageError(`${file} must hold an object: {"cells": […]}.`);
}

function readCell(value: unknown, where: string): DoorCell {
  const given = (typeof value === "object" && value !== null ? value : {}) as Record<string, unknown>;
  const { name } = given;
  if (typeof name !== "string" || !NAME.test(name)) {
    throw new UsageError(`${where}.name must be lower-case letters, digits and _, the first a letter.`);
  }
  const unknown = Object.keys(given).find((key) => key !== "name" && !PLACES.some((place) => place === key));
  if (unknown !== undefined) throw new UsageError(`${where}.${unknown}: a cell has name, ${PLACES.join(", ")}.`);
  const places = PLACES.map((place) => [place, readPlace(given[place], `${where}.${place}`)] as const);
  const cell = { name, ...Object.fromEntries(places) } as DoorCell;
  for (const place of ["mx", "submission"] as const) {
    if (isIP(splitPlace(cell[place])?.host ?? "") === 0) throw new UsageError(`${where}.${place}: ${ADDRESS_ONLY}`);
  }
  return cell;
}

function readPlace(value: unknown, where: string): string {
  if (typeof value !== "string" || splitPlace(value) === null) throw new UsageError(`${where} must be host:port.`);
  return value;
}

/** A place that somebody can connect to, by signs that mean nothing else to nginx; null for anything else. */
export function splitPlace(text: string): HostPort | null {
  const place = readAddress(text);
  return place !== null && place.port > 0 && /^[A-Za-z0-9.:-]+$/.test(place.host) ? place : null;
}
