// Passkeys in the browser: it keeps the keys and asks for finger, face or PIN. The library is loaded when one is used.
import type {
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
} from "@simplewebauthn/browser";
import { door, NoPasskey, type PeopleSchemas, take } from "../api/client.ts";

export type PasskeyAnswer = PeopleSchemas["SignInWithPasskeyRequest"]["passkey"];

/** Passkeys are bound to a name: browsers make none for a site that is opened by its address. */
export function canUsePasskeys(): boolean {
  return window.PublicKeyCredential !== undefined && !/^[\d.]+$|:/.test(location.hostname);
}

/** Lets the browser make one with options that the server gave. */
export async function makePasskey(options: object): Promise<PasskeyAnswer> {
  const { startRegistration } = await import("@simplewebauthn/browser");
  const optionsJSON = options as PublicKeyCredentialCreationOptionsJSON;
  return (await said(startRegistration({ optionsJSON }))) as object as PasskeyAnswer;
}

/** Lets the person choose one of theirs for this site. */
export async function showPasskey(): Promise<PasskeyAnswer> {
  const { options } = await take(door.POST("/dashboard/api/passkeys/options"));
  const { startAuthentication } = await import("@simplewebauthn/browser");
  const optionsJSON = options as unknown as PublicKeyCredentialRequestOptionsJSON;
  return (await said(startAuthentication({ optionsJSON }))) as object as PasskeyAnswer;
}

async function said<T>(asked: Promise<T>): Promise<T> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof Error && error.name === "InvalidStateError")
      throw new NoPasskey("There is a passkey for this account on this device already.");
    throw new NoPasskey("The browser gave no passkey: it was closed, took too long, or has none for this site.");
  }
}
