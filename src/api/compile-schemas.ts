// Schemas become functions at their first use: all of them at once are 0.8 s of processor time, and a process starts with
// two APIs (its own, and that of the process for heavy requests). Not here: the shapes, which stand at their routes.
import fastJsonStringifyCompiler from "@fastify/fast-json-stringify-compiler";
import { Ajv, type Options, type ValidateFunction } from "ajv";
import type { TSchema } from "typebox";
import { isDay, isTime } from "../http/date-range.ts";
import type { Api } from "../http/http.ts";
import type { Took, WorkMeter } from "../platform/process/thread-ms.ts";
import { listEmptier, nullDropper } from "./body/absent-nulls.ts";
import { idLowerer } from "./id-case.ts";

type Judge = { (value: unknown): boolean; errors: ValidateFunction["errors"] };
type SerializerFactory = ReturnType<typeof fastJsonStringifyCompiler>;

/** What the validators took since it was last asked. Making them is nobody's doing. */
export type Judged = { take(): Took };

const NOTHING: Took = { ms: 0, elapsed_ms: 0 };

/**
 * Installs the validators of requests. Bodies are taken as they are (a number is no string); query strings are text and
 * are read as what the schema says.
 */
export function compileAtFirstUse(app: Api, meter: WorkMeter): Judged {
  let sum = NOTHING;
  const measure = (judge: () => boolean): boolean => {
    meter.begin();
    const isValid = judge();
    const { ms, elapsed_ms } = meter.end();
    sum = { ms: sum.ms + ms, elapsed_ms: sum.elapsed_ms + elapsed_ms };
    return isValid;
  };
  const options: Options = {
    allErrors: false,
    useDefaults: true,
    removeAdditional: false,
    strict: false,
    allowUnionTypes: true,
    addUsedSchema: false,
    // An error then holds the schema that it is about: an unknown field is answered with the known one it resembles.
    verbose: true,
  };
  const exact = withFormats(new Ajv({ ...options, coerceTypes: false }));
  const coercing = withFormats(new Ajv({ ...options, coerceTypes: true }));
  app.setValidatorCompiler(({ schema, httpPart, method }) => {
    const ofNulls = httpPart !== "body" ? null : method === "POST" ? nullDropper : listEmptier;
    const make = (): Judge => {
      const prepared = [idLowerer(schema as TSchema), ofNulls?.(schema as TSchema) ?? null];
      return preparing(prepared, (httpPart === "body" ? exact : coercing).compile(schema as object));
    };
    return judgeAtFirstUse(make, httpPart === "body" ? measure : run);
  });
  return {
    take() {
      const taken = sum;
      sum = NOTHING;
      return taken;
    },
  };
}

function run(judge: () => boolean): boolean {
  return judge();
}

/** Fastify's own writer of answers, made for a schema when it is first needed. */
export const serializersAtFirstUse: SerializerFactory = (shared, options) => {
  const compile = fastJsonStringifyCompiler()(shared, options);
  return (route) => {
    let write: ((value: unknown) => string) | null = null;
    return (value) => {
      write ??= compile(route);
      return write(value);
    };
  };
};

function judgeAtFirstUse(make: () => Judge, measured: (judge: () => boolean) => boolean): Judge {
  let made: Judge | null = null;
  const judge = (value: unknown): boolean => {
    made ??= make();
    const known = made;
    const isValid = measured(() => known(value));
    judge.errors = known.errors;
    return isValid;
  };
  judge.errors = null as Judge["errors"];
  return judge;
}

/** Before the validator looks, so that a list with one id in two spellings holds it twice. */
function preparing(steps: (((value: unknown) => void) | null)[], validate: ValidateFunction): Judge {
  const prepare = steps.filter((step) => step !== null);
  const judge = (value: unknown): boolean => {
    for (const step of prepare) step(value);
    const isValid = validate(value);
    judge.errors = validate.errors;
    return isValid;
  };
  judge.errors = null as Judge["errors"];
  return judge;
}

function withFormats(ajv: Ajv): Ajv {
  const uuid = /^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$/;
  ajv.addFormat("date", isDay);
  ajv.addFormat("date-time", isTime);
  ajv.addFormat("uuid", uuid);
  ajv.addFormat("uri", (text) => URL.canParse(text));
  ajv.addFormat("byte", true);
  ajv.addFormat("binary", true);
  return ajv;
}
