// SPDX-License-Identifier: Apache-2.0
// Where the site has several versions, versions.json lies beside their folders: each gets a link.
(async () => {
  const place = document.querySelector(".versions");
  const root = new URL(place.dataset.root || "./", document.baseURI);
  const names = await fetch(new URL("../versions.json", root)).then((answer) => (answer.ok ? answer.json() : []), () => []);
  for (const name of names) {
    const link = document.createElement("a");
    link.textContent = name;
    link.href = new URL(`../${name}/`, root);
    if (root.pathname.endsWith(`/${name}/`)) link.setAttribute("aria-current", "page");
    place.append(link, " ");
  }
  place.hidden = names.length < 2;
})();
