// What the dashboard says about privacy levels; part of the sentences in strings.js.

export const en = {
  problem_number_of_levels: "Offer at least two privacy levels, and at most {most}.",
  problem_level_name: "The name of a privacy level has 1 to 40 visible characters.",
  problem_level_twice: "The privacy level {level} is there twice.",
  problem_levels_not_ascending:
    "Name the privacy levels from the strongest to the weakest, each with a larger epsilon than the " +
    "one before.",
  problem_unknown_level:
    "The table of people names the privacy level {level}, which has no epsilon. The levels are: " +
    "{names}.",
  problem_empty_level:
    "Nobody has the privacy level {level}. Leave it out, or write it into the table.",
  problem_level_expects_too_few:
    "Fewer people are expected to respond at the privacy level {level} than its minimum of {minimum}.",
  problem_no_levels: "These groups are no privacy levels: their results are shown side by side.",
  problem_too_few_results: "At least two results are needed to combine them.",
  problem_different_questions:
    "Only surveys that ask the same questions, word by word, can be combined.",
  problem_same_survey: "The same survey is given twice. Give each of them once.",
  problem_same_population:
    "Two of the surveys ask the same people, {population}. Only surveys of different people can be " +
    "combined.",
  problem_same_person:
    "Somebody is invited to two of the surveys. Only surveys of different people can be combined.",
  problem_people_unknown:
    "A folder does not say who was invited, so nobody can check that the surveys asked different " +
    "people.",
  problem_part_missing: "{part} has no result, so there is nothing to combine yet.",
};

export const de = {
  problem_number_of_levels: "Bieten Sie mindestens zwei Schutzstufen an, höchstens {most}.",
  problem_level_name: "Der Name einer Schutzstufe hat 1 bis 40 sichtbare Zeichen.",
  problem_level_twice: "Die Schutzstufe {level} kommt zweimal vor.",
  problem_levels_not_ascending:
    "Nennen Sie die Schutzstufen von der stärksten zur schwächsten, jede mit einem größeren Epsilon " +
    "als die vorige.",
  problem_unknown_level:
    "Die Tabelle der Personen nennt die Schutzstufe {level}, die kein Epsilon hat. Die Stufen sind: " +
    "{names}.",
  problem_empty_level:
    "Niemand hat die Schutzstufe {level}. Lassen Sie sie weg, oder tragen Sie sie in die Tabelle " +
    "ein.",
  problem_level_expects_too_few:
    "Auf der Schutzstufe {level} werden weniger Antworten erwartet als ihre Mindestzahl {minimum}.",
  problem_no_levels:
    "Diese Gruppen sind keine Schutzstufen: Ihre Ergebnisse stehen nebeneinander.",
  problem_too_few_results: "Zum Zusammenfassen braucht es mindestens zwei Ergebnisse.",
  problem_different_questions:
    "Nur Umfragen, die Wort für Wort dasselbe fragen, lassen sich zusammenfassen.",
  problem_same_survey: "Dieselbe Umfrage ist zweimal angegeben. Geben Sie jede einmal an.",
  problem_same_population:
    "Zwei der Umfragen fragen dieselben Personen, {population}. Nur Umfragen unter verschiedenen " +
    "Personen lassen sich zusammenfassen.",
  problem_same_person:
    "Jemand ist zu zwei der Umfragen eingeladen. Nur Umfragen unter verschiedenen Personen lassen " +
    "sich zusammenfassen.",
  problem_people_unknown:
    "Ein Ordner sagt nicht, wer eingeladen war. So lässt sich nicht prüfen, ob die Umfragen " +
    "verschiedene Personen gefragt haben.",
  problem_part_missing: "{part} hat kein Ergebnis, also gibt es noch nichts zusammenzufassen.",
};
