// npm run dashboard -- e2e [pattern of stories' names] [--look pattern of pages' names] [--json]: the stories and the looks of the
// dashboard in a real Chromium against a running Postern. With a pattern only what fits it: `--look` alone plays no story.
// Where there is no Chromium it says so and ends with 3, which the proof run counts as skipped.
import { tmpdir } from "node:os";
import { join } from "node:path";
import { lookAtPages, type Seen } from "./looks.ts";
import { proveAgain } from "./persons.ts";
import { findChromium, type Stage, setStage } from "./stage.ts";
import { DOCUMENTATION_STORIES } from "./stories/documentation.ts";
import { DOMAIN_STORIES } from "./stories/domains.ts";
import { EMAIL_STORIES } from "./stories/emails.ts";
import { FIRST_DAY } from "./stories/first-day.ts";
import { INBOUND_STORIES } from "./stories/inbound.ts";
import { LIST_STORIES } from "./stories/lists.ts";
import { MASKED_STORIES } from "./stories/masked.ts";
import { OIDC_STORIES } from "./stories/oidc.ts";
import { OPERATOR_STORIES } from "./stories/operator.ts";
import { PEOPLE_STORIES } from "./stories/people.ts";
import { SETTINGS_STORIES } from "./stories/settings.ts";
import { SIGN_UP_STORIES } from "./stories/sign-up.ts";
import { TEMPLATE_STORIES } from "./stories/templates.ts";
import { type Story, unexpected } from "./story.ts";

const LACKING = 3;
const STORIES: readonly Story[] = [
  ...EMAIL_STORIES,
  ...SETTINGS_STORIES,
  ...OPERATOR_STORIES,
  ...PEOPLE_STORIES,
  ...SIGN_UP_STORIES,
  ...OIDC_STORIES,
  ...INBOUND_STORIES,
  ...TEMPLATE_STORIES,
  ...MASKED_STORIES,
  ...DOMAIN_STORIES,
  ...DOCUMENTATION_STORIES,
  ...LIST_STORIES,
  ...FIRST_DAY,
];
const NOT_LOOKED: Seen = { pages: 0, violations: [], faults: [] };
const SCREENSHOTS = process.env.POSTERN_SCREENSHOTS ?? join(tmpdir(), "postern-dashboard");

type Chosen = { json: boolean; only?: string; look?: string };

export async function runEndToEnd({ json, only, look }: Chosen): Promise<number> {
  const executablePath = findChromium();
  if (executablePath === null) {
    console.log("There is no Chromium here (apt-get install chromium, or POSTERN_CHROMIUM=its path): skipped");
    return LACKING;
  }
  await using stage = await setStage(executablePath);
  const stories =
    look === undefined || only !== undefined ? STORIES.filter(({ name }) => new RegExp(only ?? "").test(name)) : [];
  const isLooked = only === undefined || look !== undefined;
  const looks = isLooked ? await lookAtPages(stage, SCREENSHOTS, new RegExp(look ?? "")) : NOT_LOOKED;
  let passed = 0;
  for (const story of stories) if (await playStory(stage, story)) passed += 1;
  for (const fault of [...looks.violations, ...looks.faults]) console.log(`✖ ${fault}`);
  const { pages, violations, faults } = looks;
  const result = {
    stories: stories.length,
    passed,
    pages,
    axe_violations: violations.length,
    faults: faults.length,
    screenshots: SCREENSHOTS,
  };
  console.log(
    json
      ? JSON.stringify(result)
      : `${passed} of ${stories.length} stories, ${pages} pages at 3 widths in 2 themes, ${violations.length} axe violations, pictures in ${SCREENSHOTS}`,
  );
  return passed === stories.length && violations.length === 0 && faults.length === 0 ? 0 : 1;
}

async function playStory(stage: Stage, { name, play, expected }: Story): Promise<boolean> {
  await proveAgain(stage.scene, stage.owner);
  const { page, complaints, close } = await stage.open();
  try {
    await play(stage, page);
    const others = unexpected(complaints, expected);
    if (others.length > 0) throw new Error(`the browser complains: ${others.join("; ")}`);
    console.log(`✔ ${name}`);
    return true;
  } catch (error) {
    const places = await stage.picture(join(SCREENSHOTS, "failed"));
    console.log(`✖ ${name}\n  at ${places.join(", ")}\n  ${error instanceof Error ? error.message : error}`);
    return false;
  } finally {
    await close();
  }
}
