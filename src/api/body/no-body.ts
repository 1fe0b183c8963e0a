// Operations that take no body: what is sent with them all the same must be empty, so that a field for another operation,
// or one that somebody made up, is a 400 that names it and not dropped in silence.
import { Closed, Nullable } from "../../http/http.ts";

const CHANGING = new Set(["POST", "PUT", "PATCH", "DELETE"]);
const NOTHING = Nullable(Closed({}));

type Route = { method: string | string[]; schema?: { body?: unknown } };

/** A hook for routes as they are mounted: those that change something and declare no body get one without fields. */
export function demandEmptyBody(route: Route): void {
  const isChanging = [route.method].flat().some((method) => CHANGING.has(method));
  if (isChanging && route.schema?.body === undefined) route.schema = { ...route.schema, body: NOTHING };
}
