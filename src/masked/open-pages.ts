// What the pages behind links in mail have in common: their token, and what they say when there is nothing to do.
import { Type } from "typebox";
import { FORM_BYTES_MAX, page } from "../http/public-page.ts";

export const ofToken = {
  schema: { hide: true, params: Type.Object({ token: Type.String({ maxLength: 2_000 }) }) },
  bodyLimit: FORM_BYTES_MAX,
};

export const OFF = page(
  "Switched off",
  "<p>Nothing is sent from your masked address at the moment, because you switched that off.</p>",
);
export const SHOWS_NEW = page(
  "Not sent",
  "<p>It would show a mailbox that your masked address has had only since this mail was written.</p>",
);
export const OVER = page("This link does not work", "<p>It is too old, or what it was for was removed.</p>");
