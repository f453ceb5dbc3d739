/** The items in groups, by the result of `groupOf` for each item: `Map.groupBy`, which Node 20 does not have. */
export function groupedBy<Item, Group>(items: Iterable<Item>, groupOf: (item: Item) => Group): Map<Group, Item[]> {
  const groups = new Map<Group, Item[]>();
  for (const item of items) {
    const name = groupOf(item);
    const group = groups.get(name);
    if (group) {
      group.push(item);
    } else {
      groups.set(name, [item]);
    }
  }
  return groups;
}
