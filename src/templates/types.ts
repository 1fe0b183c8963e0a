// Templates as rows and as requests.
import type { Template } from "./language/nodes.ts";

export type VariableDefault = string | number | boolean;

/** What a template reads: `required` ones without a default must be given to send it. */
export type TemplateVariable = { name: string; required: boolean; default: VariableDefault | null };

/** As an author declares it; `required` null: as the source has it. */
export type DeclaredVariable = { name: string; required: boolean | null; default: VariableDefault | null };

export type Sources = { subject: string; html_body: string | null; text_body: string | null };
export type Part = keyof Sources;

/** In a list both bodies may be null, where those of the rows before were enough. */
export type TemplateRow = Sources & {
  id: string;
  org_id: string;
  name: string;
  slug: string;
  description: string | null;
  subject: string;
  variables: TemplateVariable[];
  active: boolean;
  version: number;
  created_at: Date;
  updated_at: Date;
};

export type StoredTemplate = TemplateRow & { declared: DeclaredVariable[] | null };

export type VariableInput = { name: string; required?: boolean; default?: VariableDefault | null };

/** The body of a PUT; every field may be absent. */
export type TemplateChange = {
  name?: string;
  slug?: string;
  description?: string | null;
  subject?: string;
  html_body?: string | null;
  text_body?: string | null;
  variables?: VariableInput[] | null;
  active?: boolean;
};

export type NewTemplate = TemplateChange & { name: string; subject: string };

export type Warning = { code: string; field: Part; message: string };

export type Preview = Sources & {
  missing_variables: string[];
  unused_variables: string[];
  warnings: Warning[];
};

/** A template's sources, in the language. */
export type ParsedSources = { subject: Template; html_body: Template | null; text_body: Template | null };
