// What is stored of one address: a page of it, and all of it for a file.
import { queryOptions } from "@tanstack/react-query";
import { type Schemas, take, v1 } from "./client.ts";
import { PAGE_ROWS } from "./queries.ts";

export function addressData(filters: { email: string; after?: string }) {
  return queryOptions({
    queryKey: ["address-data", filters],
    queryFn: ({ signal }) =>
      take(v1.GET("/v1/address-data", { params: { query: { ...filters, limit: PAGE_ROWS } }, signal })),
  });
}

/** Its mail of all pages together. */
export async function wholeAddressData(email: string): Promise<Omit<Schemas["ExportAddressDataAnswer"], "next_after">> {
  const read = (after?: string) =>
    take(v1.GET("/v1/address-data", { params: { query: { email, after, limit: 100 } } }));
  const { next_after, ...whole } = await read();
  for (let after = next_after; after !== null; ) {
    const page = await read(after);
    whole.sent.push(...page.sent);
    whole.received.push(...page.received);
    after = page.next_after;
  }
  return whole;
}
