export async function benchPostfix(_o: unknown): Promise<number | null> { return null; }
export function postfixVersion(): string { return ""; }
