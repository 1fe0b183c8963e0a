// Templates for the stage.
import type { Scene } from "../../test/support/scene.ts";

export type TemplateRecords = { order: string };

const ORDER = `<!-- Order confirmation -->
<table width="100%" style="background:#f4f4f2; padding:24px; font-family:sans-serif">
  <tr><td style="background:#fff; padding:24px; border-radius:8px">
    <h1 style="margin:0 0 12px">Thank you, {{customer.name}}!</h1>
    <p>Your order <b>{{order}}</b> is on its way.</p>
    <ul>
    {{#each items}}
      <li>{{amount}} × {{name}}</li>
    {{/each}}
    </ul>
    {{#if coupon}}
    <p>With {{coupon}} the next one is cheaper.</p>
    {{/if}}
    <p>Yours, {{default shop "Nordkiosk"}}</p>
  </td></tr>
</table>
`;

export async function fillTemplates(scene: Scene): Promise<TemplateRecords> {
  const make = async (body: Record<string, unknown>): Promise<string> => {
    const { status, body: answer } = await scene.ask("POST", "/v1/templates", body);
    if (status !== 201) throw new Error(`not made: ${JSON.stringify(answer)}`);
    return (answer.template as unknown as { id: string }).id;
  };
  await make({ name: "Welcome", subject: "Welcome to {{shop}}", html_body: "<p>Hello {{name}}</p>" });
  await make({
    ...{ name: "Season's greetings", active: false },
    subject: "Happy New Year",
    text_body: "Hello {{name}}",
  });
  await make({ ...{ name: "Password reset", slug: "reset" }, subject: "A new password", text_body: "Open {{link}}" });
  const first = ORDER.replace("Thank you, {{customer.name}}!", "Thank you!").replace(
    /\s+{{#if coupon}}[\s\S]+{{\/if}}/,
    "",
  );
  const order = await make({ name: "Order confirmation", subject: "Your order", html_body: first });
  await scene.ask("PUT", `/v1/templates/${order}`, { subject: "Your order {{order}}", html_body: ORDER });
  return { order };
}
