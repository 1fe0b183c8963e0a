// How a variable of a template is described, wherever a template or a version of it is shown.
import { Type } from "typebox";
import { Named } from "../http/http.ts";

const DEFAULT_LENGTH_MAX = 2_000;

export const Default = Type.Unsafe<string | number | boolean | null>({
  anyOf: [{ type: "string", maxLength: DEFAULT_LENGTH_MAX, nullable: true }, { type: "number" }, { type: "boolean" }],
  description: "Used when the variable is absent or null",
});

export const TemplateVariable = Named(
  "TemplateVariable",
  Type.Object({
    name: Type.String({ description: "As between the braces: name, user.name, items[0].name" }),
    required: Type.Boolean({
      description: "Sending without a value is 400 template_variable_missing, unless there is a default",
    }),
    default: Default,
  }),
);
