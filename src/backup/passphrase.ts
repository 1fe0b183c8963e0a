// How long the passphrase of a backup must be. Apart from envelope.ts, so that `postern doctor` reads in no encryption.

/** A stolen backup can be tried with as many passphrases as one likes. */
export const PASSPHRASE_CHARACTERS_MIN = 12;
export const LONGER_PASSPHRASE = "take a longer one (openssl rand -base64 24 makes one)";

/** Only making a backup asks: older backups with a shorter passphrase are still read. */
export function isTooShort(passphrase: string): boolean {
  return [...passphrase].length < PASSPHRASE_CHARACTERS_MIN;
}
