// What password managers and browser extensions ask of forwarding services, in the forms of the two that all of them know.
// Their forms, not ours: these operations are not in the description of the API. docs/masks.md says how to set a program up.
import type { Api } from "../../http/http.ts";
import type { AliasPorts } from "../addresses/aliases.ts";
import { mountAddy } from "./addy.ts";
import type { OwnWorld } from "./own-aliases.ts";
import { mountSimpleLogin } from "./simplelogin.ts";

/** Mounts both in a scope that lets in mask keys alone. */
export function mountForwarders(api: Api, world: OwnWorld, ports: AliasPorts): void {
  mountSimpleLogin(api, world, ports);
  mountAddy(api, world, ports);
}
