// Operations by resource: `masked.aliases.create` stands in the tree's masked → aliases.
import type { Operation } from "./read.ts";

export type Tree = { path: readonly string[]; operations: Operation[]; below: Map<string, Tree> };

/** In the order of the operations. */
export function treeOf(operations: readonly Operation[]): Tree {
  const root: Tree = { path: [], operations: [], below: new Map() };
  for (const operation of operations) {
    let at = root;
    for (const name of operation.resource) {
      const below: Tree = at.below.get(name) ?? { path: [...at.path, name], operations: [], below: new Map() };
      at.below.set(name, below);
      at = below;
    }
    at.operations.push(operation);
  }
  return root;
}

/** All resources, those within others first. */
export function resourcesOf(tree: Tree): Tree[] {
  return [...tree.below.values()].flatMap((below) => [...resourcesOf(below), below]);
}
