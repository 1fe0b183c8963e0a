// Before anything is made: can every address that these roles listen on be had? All that cannot are named at once, as an
// operator who mends one and starts again only to hear of the next is not helped.
import { createServer } from "node:net";
import type { Config, Role } from "../../config.ts";
import { type Place, placesOf, portProblem } from "./places.ts";

const ROLES_OF = new Map<string, Role[]>([
  ["POSTERN_HTTP", ["api"]],
  ["POSTERN_HTTPS", ["api"]],
  // The names of all of these are in the certificate, and each may lead to another machine.
  ["POSTERN_ACME_HTTP", ["api", "mx", "submission"]],
  ["POSTERN_MX", ["mx"]],
  ["POSTERN_SUBMISSION", ["submission"]],
  ["POSTERN_SUBMISSIONS", ["submission"]],
]);

type PlaceConfig = Parameters<typeof placesOf>[0] & Pick<Config, "internal_is_default">;

/** Throws with a line for each address that cannot be listened on. */
export async function refuseTakenPlaces(config: PlaceConfig, roles: readonly Role[]): Promise<void> {
  const places = neededPlaces(config, roles);
  const problems = await Promise.all(
    places.map(async (place) => {
      const code = await bindError(place.host, place.port);
      if (code === null) return [];
      const { says, remedy } = portProblem(place, code);
      return [`${says} ${remedy}`];
    }),
  );
  if (problems.some((lines) => lines.length > 0)) throw new Error(problems.flat().join("\n"));
}

/** The addresses and ports that these roles listen on. */
export function neededPlaces(config: PlaceConfig, roles: readonly Role[]): Place[] {
  return placesOf(config).filter((place) => isNeeded(config, roles, place));
}

/** Metrics whose default place is taken go elsewhere. */
function isNeeded({ internal_is_default }: PlaceConfig, roles: readonly Role[], { variable, port }: Place): boolean {
  if (port === 0) return false;
  const served = ROLES_OF.get(variable);
  return served === undefined ? !internal_is_default : served.some((role) => roles.includes(role));
}

/** The system's code where this address cannot be listened on now; null when it can. */
export function bindError(host: string, port: number): Promise<string | null> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(null)));
  });
}
